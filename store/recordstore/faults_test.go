package recordstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

var errNoAnswer = errors.New("no answer")

// faults says how often what goes wrong, from 0 to 1.
type faults struct {
	lose  float64 // a write or a read does not arrive
	reply float64 // a write takes effect, and its answer is lost
	late  float64 // a write takes effect late, and its answer is lost
	after time.Duration
	slow  time.Duration // a request takes up to this long
	push  float64       // a pushed version is lost
}

// faulty is a driver with faults.
type faulty struct {
	recordstore.Driver
	faults
	off *atomic.Bool // no more faults
	cut *atomic.Bool // if not nil: the first fault of a write cuts the connection, until off

	mu     sync.Mutex
	random *rand.Rand
	n      atomic.Int64 // writes without an answer
}

func inject(d recordstore.Driver, f faults, random *rand.Rand) *faulty {
	return &faulty{Driver: d, faults: f, off: new(atomic.Bool), random: random}
}

func (f *faulty) chance() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.Float64()
}

func (f *faulty) delay() {
	if f.slow > 0 && !f.off.Load() {
		time.Sleep(time.Duration(f.chance() * float64(f.slow)))
	}
}

func (f *faulty) isCut() bool { return f.cut != nil && f.cut.Load() && !f.off.Load() }

func (f *faulty) Read(ctx context.Context, key string) (recordstore.Item, error) {
	f.delay()
	if f.isCut() || !f.off.Load() && f.chance() < f.lose {
		return recordstore.Item{}, errNoAnswer
	}
	it, err := f.Driver.Read(ctx, key)
	f.delay()
	return it, err
}

func (f *faulty) Write(ctx context.Context, key string, value []byte, version string, idle bool) (string, error) {
	f.delay()
	if f.off.Load() {
		return f.Driver.Write(ctx, key, value, version, idle)
	}
	if f.isCut() {
		return "", errNoAnswer
	}
	switch p := f.chance(); {
	case p < f.lose:
	case p < f.lose+f.reply:
		_, _ = f.Driver.Write(ctx, key, value, version, idle)
	case p < f.lose+f.reply+f.late:
		time.AfterFunc(time.Duration((1+f.chance())/2*float64(f.after)), func() {
			_, _ = f.Driver.Write(context.Background(), key, value, version, idle)
		})
	default:
		next, err := f.Driver.Write(ctx, key, value, version, idle)
		f.delay()
		return next, err
	}
	f.n.Add(1)
	if f.cut != nil {
		f.cut.Store(true)
	}
	return "", errNoAnswer
}

// Watch loses pushes.
func (f *faulty) Watch(ctx context.Context, key string) (<-chan recordstore.Item, error) {
	w, ok := f.Driver.(recordstore.Watcher)
	if !ok {
		return nil, errors.New("this engine does not push")
	}
	in, err := w.Watch(ctx, key)
	if err != nil {
		return nil, err
	}
	out := make(chan recordstore.Item, 16)
	go func() {
		defer close(out)
		for it := range in {
			if f.off.Load() || f.chance() >= f.push {
				select {
				case out <- it:
				default:
				}
			}
		}
	}()
	return out, nil
}

// The suite holds while one write in five is lost, is answered with a lost reply, or is
// applied late.
func TestConformanceUnderFaults(t *testing.T) {
	for name, dates := range map[string]bool{"dates": true, "observed": false} {
		t.Run(name, func(t *testing.T) {
			var srv *server
			var n atomic.Int64
			open := func(t *testing.T) *store.Store {
				f := inject(srv.driver(), faults{lose: 0.05, reply: 0.08, late: 0.08, after: 40 * time.Millisecond, push: 0.2}, rand.New(rand.NewPCG(1, uint64(n.Add(1)))))
				t.Cleanup(func() { n.Add(f.n.Load()) })
				s := recordstore.New(f, &recordstore.Options{Poll: 5 * time.Millisecond, Look: 20 * time.Millisecond})
				recordstore.SetClock(s, virtual.Clock())
				return s
			}
			storetest.Run(t, func(t *testing.T) *store.Store {
				srv = &server{dates: dates, pushes: true}
				return open(t)
			}, storetest.Options{Second: open, ShortTTL: 500 * time.Millisecond, Virtual: true, Observed: true})
			if n.Load() < 500 {
				t.Errorf("%d faults, want 500 at least", n.Load())
			}
		})
	}
}

// An Acquire that never gets an answer fails. Nothing of it is left then, and none of its
// late writes takes effect, whether or not anybody else writes meanwhile.
func TestNothingIsLeftOfAnAmbiguousAcquire(t *testing.T) {
	for name, f := range map[string]struct {
		faults
		cuts bool
	}{
		"reply lost":           {faults{reply: 1}, false},
		"late":                 {faults{late: 1, after: 300 * time.Millisecond}, false},
		"mixed":                {faults{reply: .3, late: .3, lose: .4, after: 300 * time.Millisecond}, false},
		"reply lost, then cut": {faults{reply: 1}, true},
		"late, then cut":       {faults{late: 1, after: 800 * time.Millisecond}, true},
	} {
		t.Run(name, func(t *testing.T) {
			failed := 0
			for seed := range uint64(20) {
				synctest.Test(t, func(t *testing.T) {
					srv := &server{dates: true, pushes: true}
					d := inject(srv.driver(), f.faults, rand.New(rand.NewPCG(seed, 0)))
					if f.cuts {
						d.cut = new(atomic.Bool)
					}
					s := open(d, &recordstore.Options{Timeout: 200 * time.Millisecond}, virtual.Clock())
					other := open(srv.driver(), nil, virtual.Clock())
					defer other.Close()
					defer s.Close()
					l := store.Lease{Name: "x", Owner: store.NewOwner(), TTL: time.Minute}
					_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
					d.off.Store(true)
					if err == nil {
						return // a later read has shown that it was applied
					}
					failed++
					if !errors.Is(err, store.ErrAmbiguous) {
						t.Errorf("Acquire without an answer: %v, want an ambiguous outcome", err)
					}
					time.Sleep(500 * time.Millisecond) // the undo has its answer
					want := ""
					if seed%2 == 0 {
						mine := store.Lease{Name: "x", Owner: store.NewOwner(), TTL: time.Minute}
						if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: mine}); err != nil {
							t.Errorf("acquire the lock after the undo: %v", err)
						}
						want = mine.Owner
					}
					time.Sleep(time.Second) // all late writes have arrived
					if st, err := other.Inspect(t.Context(), "x"); err != nil || st.Holder.Owner != want || len(st.Holdings()) > 1 {
						t.Errorf("held by %+v, %v, want only owner %q", st.Holdings(), err, want)
					}
				})
			}
			if failed == 0 && name != "reply lost" && name != "late" && name != "mixed" {
				t.Error("no acquire failed")
			}
		})
	}
}

func open(d recordstore.Driver, o *recordstore.Options, c clock.Clock) *store.Store {
	s := recordstore.New(d, o)
	recordstore.SetClock(s, c)
	return s
}

// skewed returns a clock with an epoch of its own that runs at the given rate.
func skewed(rate float64, epoch time.Duration) clock.Clock {
	began := time.Now()
	return clock.Func(func() clock.Instant {
		return clock.Instant(epoch + time.Duration(float64(time.Since(began))*rate))
	})
}

// contest has clients whose clocks run at different rates compete for one lock for a minute
// of virtual time, while writes, answers and pushes are lost or late, holders die, and clients
// are replaced by new ones. It judges that no two leases are valid at once, that tokens
// rise, and that the lock is not stuck.
func contest(t *testing.T, seed uint64, dates bool, ttl time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(seed, 1))
		srv := &server{dates: dates, pushes: seed%3 > 0, forgets: seed%2 == 0}
		var mu sync.Mutex // of what follows
		var last fence.Token
		held, grants, over := "", 0, time.Now().Add(time.Minute)
		var wg sync.WaitGroup
		for i := range 4 {
			random := rand.New(rand.NewPCG(seed, uint64(2+i)))
			own := skewed(0.996+random.Float64()*0.008, time.Duration(random.Int64N(int64(time.Hour))))
			wg.Go(func() {
				for time.Now().Before(over) {
					f := inject(srv.driver(), faults{lose: 0.04, reply: 0.04, late: 0.04, after: 3 * ttl, slow: ttl / 50, push: 0.2}, rand.New(rand.NewPCG(random.Uint64(), 0)))
					s := open(f, &recordstore.Options{Timeout: ttl / 2, Poll: ttl / 20, Look: ttl}, own)
					var workers sync.WaitGroup
					for range 3 {
						random := rand.New(rand.NewPCG(random.Uint64(), 0))
						workers.Go(func() {
							for range 5 {
								l := store.Lease{Name: "x", Owner: store.NewOwner(), TTL: ttl}
								ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(8*ttl))))
								start := own.Now()
								g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
								cancel()
								if err != nil {
									continue
								}
								until := validity.Until(start.Add(g.Since), ttl)
								left := until.Sub(own.Now())
								if left <= 0 {
									continue
								}
								mu.Lock()
								if held != "" {
									t.Errorf("seed %d: %s is granted the lock while %s has it", seed, l.Owner, held)
								}
								if grants++; g.Token <= last {
									t.Errorf("seed %d: token %d after %d", seed, g.Token, last)
								}
								held, last = l.Owner, g.Token
								mu.Unlock()
								dies := random.IntN(8) == 0
								if work := time.Duration(random.Int64N(int64(ttl / 10))); !dies {
									left = min(left, work)
								}
								// The rate of its clock decides when a holder that dies would have stopped.
								time.Sleep(time.Duration(float64(left) * 0.998))
								mu.Lock()
								held = ""
								mu.Unlock()
								if !dies {
									_ = s.Release(t.Context(), store.ReleaseRequest{Lease: l})
								}
							}
						})
					}
					workers.Wait()
					s.Close()
				}
			})
		}
		wg.Wait()
		if grants < 20 {
			t.Errorf("seed %d: %d grants in a minute, want 20 at least", seed, grants)
		}
		_ = random
	})
}

func TestContestsUnderFaults(t *testing.T) {
	seeds := uint64(16)
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		contest(t, seed, seed%4 < 2, 400*time.Millisecond)
	}
}
