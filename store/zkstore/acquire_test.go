package zkstore

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// An attempt whose holder leaves while it is refused keeps its place, which has the lock then. A
// new place would be behind those of others.
func TestRefusedPlaceKeepsItsTurn(t *testing.T) {
	t.Parallel() // it mostly waits
	s := mustOpen(t, &Options{servers: []string{shared.Addr}})
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	holder, l := request("keeps its turn", 20*time.Second), request("keeps its turn", 20*time.Second)
	mustAcquire(t, other, holder)
	a := &attempt{s, store.AcquireRequest{Lease: l}, s.clock.Now()}
	p, err := s.enqueue(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	q, me, err := p.queue(t.Context())
	if err != nil || q.owns(me).Verdict == rule.Granted {
		t.Fatalf("the place has the lock, or %v", err)
	}
	mustRelease(t, other, holder)
	if _, err := a.refused(t.Context(), p, q.queue, me); !errors.Is(err, errChanged) {
		t.Fatalf("refuse a place whose holder has left: %v, want %v", err, errChanged)
	}
	if _, err := a.take(t.Context(), p); err != nil {
		t.Fatalf("take the lock: %v", err)
	}
	st, err := other.Inspect(t.Context(), l.Name)
	if err != nil || st.Holder.Owner != l.Owner {
		t.Fatalf("inspect: %+v, %v, want the holder %s", st, err, l.Owner)
	}
	mustRelease(t, s, l)
}

// If the answer to the refusal of an attempt is lost, and the holder leaves before the request is
// sent again, the place is gone. The attempt makes another one.
func TestLostAnswerToARefusal(t *testing.T) {
	t.Parallel() // it mostly waits
	s, p := proxied(t)
	other := mustOpen(t, &Options{servers: []string{shared.Addr}})
	holder, l := request("lost refusal", 20*time.Second), request("lost refusal", 20*time.Second)
	first := request("so that there is a session", 20*time.Second)
	mustAcquire(t, s, first)
	mustRelease(t, s, first)
	mustAcquire(t, other, holder)
	p.CutReplyTo(other.leases.get(leaseKey{holder.Name, holder.Owner}).place.Load().name, 0)
	p.RefuseNew()
	done := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		done <- err
	}()
	eventually.True(t, "the answer is lost", func() bool { return p.Stats().Cut == 1 })
	mustRelease(t, other, holder)
	p.Pass()
	if err := <-done; err != nil {
		t.Fatalf("acquire: %v, want the lock, which is free", err)
	}
	mustRelease(t, s, l)
}
