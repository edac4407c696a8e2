package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// checkReleaseIsOneStep: a release that is repeated while the lock changes hands leaves the
// next lease alone.
func checkReleaseIsOneStep(t *trial) {
	race(t, "a release that was repeated", func(s *store.Store, r store.Lease) {
		_ = s.Release(t.Context(), store.ReleaseRequest{Lease: r})
	})
}

// checkRenewIsOneStep: a renewal that is under way while the lock changes hands leaves the
// next lease alone, and does not bring its own back.
func checkRenewIsOneStep(t *trial) {
	race(t, "a renewal beside the release", func(s *store.Store, r store.Lease) { s.Renew(t.Context(), []store.Lease{r}) })
}

// checkJoinDuringRenewal: a renewal with a longer TTL takes nothing back of what changed
// meanwhile, such as that another attempt of the owner has joined the lease.
func checkJoinDuringRenewal(t *trial) {
	rounds, end := 200, t.now().Add(150*time.Millisecond)
	if t.options.Virtual {
		rounds = 10
	}
	for i := range rounds {
		if i >= 4 && t.now() > end {
			break
		}
		longer := t.attempt(t.request(t.name(), t.long))
		held := longer
		held.TTL -= time.Millisecond
		g := t.acquire(t.first, held)
		joined := t.attempt(held)
		s := t.handles()[i%len(t.handles())]
		var both sync.WaitGroup
		both.Go(func() {
			if err := t.renew(t.first, longer); err != nil {
				t.Errorf("renew while another attempt joins: %v", err)
			}
		})
		both.Go(func() {
			again, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: joined})
			// Of several nodes, one may get this attempt before the first one, and give it a token of its own.
			same := again.Token == g.Token || t.several() && again.Token > g.Token
			if err != nil || !same {
				t.Errorf("acquire by the same owner during a renewal: token %v, error %v, want token %v", again.Token, err, g.Token)
			}
		})
		both.Wait()
		t.notHeld("undo of an attempt that another one has joined during a renewal", t.first.Release(t.Context(), undo(held)))
		t.heldBy(held)
		t.release(s, joined)
	}
}

// race passes a lock from one owner to the next, again and again, while others look at it and
// the former holder makes late calls. If such a call takes several steps in the store,
// the lock soon changes hands between two of them.
func race(t *trial, what string, late func(s *store.Store, r store.Lease)) {
	const calls, lookers = 4, 6
	rounds, end := 3000, t.now().Add(150*time.Millisecond)
	if t.options.Virtual {
		rounds = 10
	}
	name := t.name()
	holder := t.request(name, t.long)
	t.acquire(t.first, holder)
	for range rounds {
		if t.now() > end {
			break
		}
		var next atomic.Pointer[store.Lease]
		var released atomic.Bool
		var all, looking sync.WaitGroup
		over := make(chan struct{})
		for i := range calls {
			s := t.handles()[i%len(t.handles())]
			all.Go(func() { late(s, holder) })
		}
		all.Go(func() {
			if err := t.first.Release(t.Context(), store.ReleaseRequest{Lease: holder, Renewed: true}); err != nil && !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("release by the holder: %v", err)
			}
			released.Store(true)
		})
		rival := t.request(name, t.long)
		all.Go(func() {
			s := t.other()
			for asked, tries := 0, 0; tries < 300; asked++ {
				if released.Load() {
					tries++
				}
				// A handle may remember the holder for a moment. Virtual time stands still while
				// a goroutine runs, and the release may wait for it.
				if tries > 20 || t.options.Virtual && asked > 100 {
					t.pause()
				}
				_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: rival})
				if err == nil {
					t.track(rival)
					next.Store(&rival)
					return
				}
				if !refused(err) {
					t.Errorf("acquire a lock that changes hands: %v", err)
					return
				}
				if t.options.Virtual {
					time.Sleep(time.Microsecond) // or no time passes for the others
				}
			}
		})
		for i := range lookers {
			s := t.handles()[i%len(t.handles())]
			looking.Go(func() {
				for range 100 { // not without end: the calls have to get their turn
					select {
					case <-over:
						return
					default:
						_, _ = s.Inspect(t.Context(), name)
					}
				}
			})
		}
		all.Wait()
		close(over)
		looking.Wait()
		if next.Load() == nil {
			if t.first.Caps().Nodes == 1 {
				t.Fatalf("%s by %q: the lock was not granted to %q, which came after: it is held by %q", what, holder.Owner, rival.Owner, t.inspect(t.other(), name).Holder.Owner)
			}
			// Several owners may each have got some of the nodes.
			rival = t.request(name, t.long)
			t.eventually("a lock that was released can be acquired", func() bool {
				_, err := t.first.Acquire(t.Context(), store.AcquireRequest{Lease: rival})
				return err == nil
			})
			t.track(rival)
		}
		for _, s := range t.handles() {
			if st := t.inspect(s, name); st.Holder.Owner != rival.Owner {
				t.Fatalf("%s: the holder is %q, want %q, which came after", what, st.Holder.Owner, rival.Owner)
			}
		}
		holder = rival
	}
	t.release(t.first, holder)
	t.free(name)
}
