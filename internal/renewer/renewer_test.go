package renewer

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
)

// store is a driver whose renewals take a while. They can fail, and panic once.
type store struct {
	sync.Mutex
	r       Renewer[*Lease[int]]
	leases  []Lease[*Lease[int]]
	start   time.Time
	takes   time.Duration
	hangs   time.Duration // leases of this TTL or a longer one get no answer; 0: all get one
	fails   bool
	panics  bool
	now     int         // renewals under way
	most    int         // the most renewals under way at once
	largest int         // the size of the largest batch
	renewed map[int]int // by lease, the number of renewals
}

func newStore() *store {
	s := &store{start: time.Now(), renewed: map[int]int{}}
	s.Lock()
	defer s.Unlock()
	s.r.Init(s)
	return s
}

func (s *store) at() clock.Instant {
	return clock.Instant(time.Hour) + clock.Instant(time.Since(s.start))
}

func (s *store) LockAt() clock.Instant {
	s.Lock()
	return s.at()
}

func (s *store) Step(of *Lease[int], e leasefsm.Event, now clock.Instant) {
	s.r.Step(&s.leases[of.Of], e, now, now)
}

func (s *store) Contain(f func()) {
	defer func() { recover() }()
	f()
}

func (s *store) Renew(batch []*Lease[int]) {
	s.Lock()
	s.now++
	s.most, s.largest = max(s.most, s.now), max(s.largest, len(batch))
	// As the client does, it waits for no longer than the lease with the shortest TTL allows.
	shortest := s.leases[slices.MinFunc(batch, func(a, b *Lease[int]) int { return cmp.Compare(s.leases[a.Of].TTL, s.leases[b.Of].TTL) }).Of].TTL
	takes := s.takes
	if s.hangs > 0 && slices.ContainsFunc(batch, func(l *Lease[int]) bool { return s.leases[l.Of].TTL >= s.hangs }) {
		takes = time.Hour
	}
	s.Unlock()
	start := s.at()
	time.Sleep(min(takes, shortest/3))
	now := s.LockAt()
	defer s.Unlock()
	s.now--
	for _, l := range batch {
		e := leasefsm.Renewed
		if s.fails || takes > shortest/3 {
			e = leasefsm.RenewalUnknown
		} else {
			s.renewed[l.Of]++
		}
		s.r.Step(&s.leases[l.Of], e, start, now)
	}
	if s.panics {
		s.panics = false
		panic("the renewal panicked")
	}
}

// hold adds n leases, with a pause before each.
func (s *store) hold(n int, pause time.Duration) {
	s.holdFor(pause, slices.Repeat([]time.Duration{9 * time.Second}, n)...)
}

// holdFor adds a lease for each TTL, with a pause before each.
func (s *store) holdFor(pause time.Duration, ttls ...time.Duration) {
	s.leases = make([]Lease[*Lease[int]], len(ttls))
	for i, ttl := range ttls {
		time.Sleep(pause)
		now := s.LockAt()
		l := leasefsm.New(leasefsm.Config{TTL: ttl, Notice: ttl / 9, Renew: ttl / 3})
		s.leases[i] = NewLease(&Lease[int]{Of: i}, l.Step(leasefsm.Granted, now, now))
		s.r.Add(&s.leases[i], now)
		s.Unlock()
	}
}

// end releases all leases, so that no renewal is due any more, and lets those under way end
// in the bubble's time.
func (s *store) end() {
	defer func() {
		time.Sleep(time.Minute)
		synctest.Wait() // orders what renewals wrote before what the test reads
	}()
	now := s.LockAt()
	defer s.Unlock()
	for i := range s.leases {
		s.r.Step(&s.leases[i], leasefsm.Release, 0, now)
	}
	if len(s.r.leases) > 0 {
		panic("a released lease still has a deadline")
	}
}

// Many leases are renewed in batches by a few goroutines, and each in time. A batch that
// panics does not end the others.
func TestRenewsInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.takes, s.panics = 100*time.Millisecond, true
		const n = 5000
		s.hold(n, 0)
		time.Sleep(31 * time.Second)
		s.end()
		synctest.Wait()
		for i := range n {
			if got := s.renewed[i]; got < 9 || got > 11 || s.leases[i].State() != leasefsm.Released {
				t.Fatalf("lease %d was renewed %d times in 31 s, want 9 to 11; it is %v, want released", i, got, s.leases[i].State())
			}
		}
		if s.largest != maxBatch {
			t.Errorf("the largest batch has %d leases, want %d", s.largest, maxBatch)
		}
	})
}

// If the store is slow, few renewals are under way at once, and no lease is lost.
func TestFewRenewalsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.takes = 2 * time.Second
		s.hold(20, 150*time.Millisecond)
		time.Sleep(30 * time.Second)
		s.end()
		synctest.Wait()
		for i := range s.leases {
			if state := s.leases[i].State(); state != leasefsm.Released {
				t.Errorf("lease %d is %v, want released", i, state)
			}
		}
		if s.most < maxWorkers || s.most > 2*maxWorkers {
			t.Errorf("%d renewals were under way at once, want %d to %d", s.most, maxWorkers, 2*maxWorkers)
		}
	})
}

// A lease that has to be renewed within a short time does not bound the renewals of others.
func TestShortLeasesDoNotBoundOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.takes = 100 * time.Millisecond // too long for the short ones
		s.holdFor(time.Millisecond, append(slices.Repeat([]time.Duration{150 * time.Millisecond}, 30), 6*time.Second)...)
		for range 8000 {
			time.Sleep(time.Millisecond)
			s.takeAgain(30)
		}
		s.end()
		if state := s.leases[30].State(); state != leasefsm.Released {
			t.Errorf("the long lease is %v, want released", state)
		}
	})
}

// takeAgain takes those of the first n leases again that were lost.
func (s *store) takeAgain(n int) {
	now := s.LockAt()
	defer s.Unlock()
	for i := range n {
		if !s.leases[i].Live() {
			l := leasefsm.New(s.leases[i].Config)
			s.leases[i] = NewLease(&Lease[int]{Of: i}, l.Step(leasefsm.Granted, now, now))
			s.r.Add(&s.leases[i], now)
		}
	}
}

// Renewals that get no answer do not keep others from being sent, however many there are.
func TestHangingRenewalsDoNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.hangs = time.Minute
		ttls := slices.Repeat([]time.Duration{10 * time.Minute, 5 * time.Minute, 2 * time.Minute, time.Minute}, 10)
		short := len(ttls)
		for ttl := 60 * time.Millisecond; ttl < s.hangs; ttl *= 2 {
			ttls = append(ttls, ttl)
		}
		s.holdFor(time.Second/60, ttls...)
		time.Sleep(20 * time.Minute)
		s.end()
		for i := range s.leases {
			if state := s.leases[i].State(); i >= short && state != leasefsm.Released || i < short && state != leasefsm.Lost {
				t.Errorf("the lease of %v is %v, want lost if it had no answers, and released otherwise", s.leases[i].TTL, state)
			}
		}
	})
}

// Leases that cannot be renewed are lost in time. Then no goroutine is left.
func TestLossIsFoundInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.fails = true
		s.hold(100, 0)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		s.Lock()
		defer s.Unlock()
		for i := range s.leases {
			if state := s.leases[i].State(); state != leasefsm.Lost {
				t.Fatalf("lease %d is %v when its TTL has passed, want lost", i, state)
			}
		}
		if len(s.r.leases) > 0 || s.r.workers != 0 || len(s.r.due) != 0 {
			t.Errorf("%d leases have deadlines, %d renewals are due, %d goroutines run, want none", len(s.r.leases), len(s.r.due), s.r.workers)
		}
	})
}
