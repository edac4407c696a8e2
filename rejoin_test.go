package leasehold_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// returner is a store with a queue that can release a lease and take the next place in one
// step. It records which of these places were waited for, and which were given up.
type returner struct {
	*queueStore
	mu       sync.Mutex
	places   []string // owners of the places taken with a release, in order
	waited   map[string]bool
	gaveUp   map[string]bool
	refuses  bool   // ReleaseAndRejoin takes no place
	returned func() // called before ReleaseAndRejoin returns
	costly   bool   // rejoining does not pay
}

// Caps says that rejoining pays, unless it is costly.
func (s *returner) Caps() store.Caps {
	c := s.queueStore.Caps()
	c.Rejoins = !s.costly
	return c
}

func (s *returner) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (bool, error) {
	err := s.queueStore.Release(ctx, r)
	s.mu.Lock()
	queued := !s.refuses && err == nil
	if queued {
		s.places = append(s.places, next.Owner)
	}
	f := s.returned
	s.mu.Unlock()
	if f != nil {
		f()
	}
	return queued, err
}

func (s *returner) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	s.mu.Lock()
	s.waited[r.Owner] = true
	s.mu.Unlock()
	return s.queueStore.Wait(ctx, r, reason)
}

func (s *returner) Release(ctx context.Context, r store.ReleaseRequest) error {
	s.mu.Lock()
	s.gaveUp[r.Owner] = true
	s.mu.Unlock()
	return s.queueStore.Release(ctx, r)
}

// count returns how many places were taken with a release, and how many of these were
// waited for and given up.
func (s *returner) count() (taken, waited, gaveUp int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, owner := range s.places {
		if s.waited[owner] {
			waited++
		}
		if s.gaveUp[owner] {
			gaveUp++
		}
	}
	return len(s.places), waited, gaveUp
}

// lapse sleeps, in the bubble's time, until the client has given up places that no goroutine
// claims.
func (b *queueBench) lapse() {
	time.Sleep(60 * time.Millisecond)
	synctest.Wait()
}

// rejoins runs f in a bubble, with a client whose store is a returner.
func rejoins(t *testing.T, f func(t *testing.T, b *queueBench, s *returner)) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		s := &returner{queueStore: b.waiter, waited: map[string]bool{}, gaveUp: map[string]bool{}}
		b.c = leasehold.New(store.New(s), &b.o)
		f(t, b, s)
	})
}

// takeTurns has the client and another one take the lock in turns, n times each. The client
// pauses, in the bubble's time, before it wants the lock again. The other has it in the end.
func (b *queueBench) takeTurns(n int, pause time.Duration) *leasehold.Lease {
	b.t.Helper()
	other := leasehold.New(store.New(b.waiter), &b.o).Mutex("job")
	theirs, err := other.Acquire(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	for range n {
		time.Sleep(pause)
		ours := b.queue(b.c.Mutex("job"))
		if err := theirs.Release(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		l := ours.got()
		next := b.queue(other)
		if err := l.Release(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		theirs = next.got()
	}
	return theirs
}

// A client releases and rejoins in one step only if the store says that this pays.
func TestRejoinsOnlyWhereItPays(t *testing.T) {
	inQueue(t, leasehold.Options{}, func(t *testing.T, b *queueBench) {
		s := &returner{queueStore: b.waiter, waited: map[string]bool{}, gaveUp: map[string]bool{}, costly: true}
		b.c = leasehold.New(store.New(s), &b.o)
		b.release(b.takeTurns(20, 0))
		if taken, _, _ := s.count(); taken != 0 {
			t.Errorf("%d places were taken with a release, want none", taken)
		}
	})
}

// A client that usually wants the lock again as soon as it has released it takes its next
// place with the release, and waits there.
func TestRejoinHasItsPlace(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		theirs := b.takeTurns(20, 0)
		defer theirs.Release(t.Context())
		taken, waited, gaveUp := s.count()
		if taken < 10 || taken == 20 {
			t.Errorf("%d of 20 places were taken with a release, want most, but not the first few", taken)
		}
		if waited < taken-1 || gaveUp != 0 {
			t.Errorf("of %d places %d were waited for, want all but the last; %d were given up, want none", taken, waited, gaveUp)
		}
		b.lapse()
	})
}

// A client that does not want the lock again soon takes no place with the release.
func TestNoPlaceWithoutRejoin(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		defer b.takeTurns(20, 20*time.Millisecond).Release(t.Context())
		if taken, _, _ := s.count(); taken != 0 {
			t.Errorf("%d places were taken for a client that does not rejoin at once, want none", taken)
		}
	})
}

// A place that no goroutine claims is given up soon, and the next one is taken only after
// more rejoins in a row.
func TestUnclaimedPlaceIsGivenUp(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		theirs := b.takeTurns(10, 0)
		taken, waited, _ := s.count()
		if taken != waited+1 {
			t.Fatalf("%d places were taken, %d waited for, want all but the last", taken, waited)
		}
		b.lapse()
		if _, _, gaveUp := s.count(); gaveUp != 1 {
			t.Fatalf("%d places were given up, want 1, the last", gaveUp)
		}
		if err := theirs.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		theirs = b.takeTurns(10, 0)
		if now, _, _ := s.count(); now != taken {
			t.Errorf("%d more places were taken soon after one that nobody claimed, want none", now-taken)
		}
		if err := theirs.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer b.takeTurns(20, 0).Release(t.Context())
		if now, _, _ := s.count(); now == taken {
			t.Error("no places were taken after more rejoins in a row")
		}
		b.lapse()
	})
}

// While places follow each other quickly, one timer runs for all of them. If they follow each other
// slowly, none runs once the place is claimed: it would wake the process for nothing.
func TestTimerOfReservations(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		other := leasehold.New(store.New(b.waiter), &b.o).Mutex("job")
		theirs, err := other.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ours := b.queue(b.c.Mutex("job"))
		for i, held := range []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, time.Second, time.Second, 0, time.Second} {
			taken, _, _ := s.count()
			time.Sleep(held)
			if err := theirs.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			l := ours.got()
			next := b.queue(other)
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			ours, theirs = b.queue(b.c.Mutex("job")), next.got()
			switch now, _, _ := s.count(); {
			case now == taken && i > 6:
				t.Fatalf("turn %d: no place was taken with the release", i)
			case now == taken, taken == 0: // there is no last one
				continue
			}
			if runs := b.c.WatchesReservations(); runs != (held == 0) {
				t.Errorf("turn %d, %v after the last one: the timer runs %v, want %v", i, held, runs, !runs)
			}
		}
		if err := theirs.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := ours.got().Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.lapse()
	})
}

// If the store takes no place with the release, the next goroutine that wants the lock asks
// for it as usual.
func TestRejoinWithoutAPlace(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		s.refuses = true
		defer b.takeTurns(20, 0).Release(t.Context())
		if n := b.c.Queues(); n != 0 {
			t.Errorf("%d queues are left in the client, want none: one keeps a place that the store has not taken", n)
		}
	})
}

// If another goroutine of the client asks the store before ReleaseAndRejoin has returned,
// the place that was taken is given up.
func TestLatePlaceIsGivenUp(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		theirs := b.takeTurns(10, 0)
		ours := b.queue(b.c.Mutex("job"))
		theirs.Release(t.Context())
		l := ours.got()
		next := b.queue(leasehold.New(store.New(b.waiter), &b.o).Mutex("job"))
		var faster *turn
		s.mu.Lock()
		before := len(s.places)
		s.returned = func() {
			if faster == nil {
				faster = b.queue(b.c.Mutex("job"))
			}
		}
		s.mu.Unlock()
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.mu.Lock()
		if len(s.places) != before+1 || s.waited[s.places[before]] || !s.gaveUp[s.places[before]] {
			t.Errorf("%d more places, want 1; waited for: %v, want false; given up: %v, want true", len(s.places)-before, s.waited[s.places[before]], s.gaveUp[s.places[before]])
		}
		s.mu.Unlock()
		next.got().Release(t.Context())
		faster.got().Release(t.Context())
		b.lapse()
	})
}

// If the release fails, its error is returned, and no place is kept.
func TestRejoinAfterALoss(t *testing.T) {
	rejoins(t, func(t *testing.T, b *queueBench, s *returner) {
		theirs := b.takeTurns(10, 0)
		ours := b.queue(b.c.Mutex("job"))
		theirs.Release(t.Context())
		l := ours.got()
		b.waiter.script.Engine.Release(t.Context(), store.ReleaseRequest{Lease: store.Lease{Name: "job", Owner: l.Owner(), TTL: time.Minute}})
		if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
			t.Errorf("release of a lease that was gone: %v, want ErrLost", err)
		}
		if n := b.c.Queues(); n != 0 {
			t.Errorf("%d queues are left in the client, want none: one keeps a place that the store has not taken", n)
		}
	})
}
