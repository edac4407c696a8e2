package renewer

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
)

// store is a driver whose renewals take a while, and fail on demand.
type store struct {
	sync.Mutex
	r       Renewer[*Lease[int]]
	leases  []Lease[*Lease[int]]
	start   time.Time
	takes   time.Duration
	fails   bool
	panics  bool
	now     int // renewals under way
	most    int // that were under way at once
	largest int // batch
	renewed map[int]int
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
	s.Unlock()
	start := s.at()
	time.Sleep(s.takes)
	now := s.LockAt()
	defer s.Unlock()
	s.now--
	for _, l := range batch {
		e := leasefsm.Renewed
		if s.fails {
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

// hold begins n leases, and pauses between two of them.
func (s *store) hold(n int, pause time.Duration) {
	s.leases = make([]Lease[*Lease[int]], n)
	for i := range s.leases {
		time.Sleep(pause)
		now := s.LockAt()
		l := leasefsm.New(leasefsm.Config{TTL: 9 * time.Second, Notice: time.Second, Renew: 3 * time.Second})
		s.leases[i] = NewLease(&Lease[int]{Of: i}, l.Step(leasefsm.Granted, now, now))
		s.r.Add(&s.leases[i], now)
		s.Unlock()
	}
}

// end releases all leases, so that nothing is due any more, and lets what is under way
// come to an end in the bubble's time.
func (s *store) end() {
	defer func() {
		time.Sleep(time.Minute)
		synctest.Wait() // the test reads what renewals wrote
	}()
	now := s.LockAt()
	defer s.Unlock()
	for i := range s.leases {
		s.r.Step(&s.leases[i], leasefsm.Release, 0, now)
	}
	if _, ok := s.r.First(); ok {
		panic("a lease that is released is still kept")
	}
}

// Many leases are renewed together, by a few goroutines, and each in time. One batch that
// panics ends no other.
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
				t.Fatalf("lease %d was renewed %d times in 31 s, want every 3 s; it is %v", i, got, s.leases[i].State())
			}
		}
		if s.largest != maxBatch {
			t.Errorf("batches of up to %d, want %d", s.largest, maxBatch)
		}
	})
}

// A slow store has only a few renewals at once, and no lease is lost over it.
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
				t.Errorf("lease %d is %v", i, state)
			}
		}
		if s.most != maxWorkers {
			t.Errorf("up to %d renewals at once, want %d", s.most, maxWorkers)
		}
	})
}

// Leases that cannot be renewed are lost in time, and nothing runs any more then.
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
				t.Fatalf("lease %d is %v when its TTL is over", i, state)
			}
		}
		if _, ok := s.r.First(); ok || s.r.workers != 0 || len(s.r.due) != 0 {
			t.Errorf("%d leases are kept, %d renewals due, %d goroutines at work", len(s.r.leases), len(s.r.due), s.r.workers)
		}
	})
}
