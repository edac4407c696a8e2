package zkstore

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A waiter whose turn comes before it has watched the place ahead still tells the client
// that others want the lock. Without that, two clients that take turns would not queue for
// the next turn with the release.
func TestQueueThatMovedOnIsReported(t *testing.T) {
	t.Parallel()
	s, other := mustOpen(t, &Options{servers: []string{shared.Addr}}), mustOpen(t, &Options{servers: []string{shared.Addr}})
	held, next := request("moved on", 20*time.Second), request("moved on", 20*time.Second)
	mustAcquire(t, other, held)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request(held.Name, held.TTL)}); err == nil {
		t.Fatal("granted a lock that another owner holds")
	}
	var reported []error
	p, err := s.places.enqueue(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, other, held)
	w := &waiting{s: s, r: store.WaitRequest{Lease: next}, reason: func(err error) { reported = append(reported, err) }, start: s.clock.Now(), place: p}
	for look := range 3 {
		g, pause, err := w.look(t.Context())
		if err != nil || pause {
			t.Fatalf("look %d: pause %v, %v", look, pause, err)
		}
		if g != nil {
			break
		}
	}
	var busy *store.BusyError
	if len(reported) != 1 || !errors.As(reported[0], &busy) || busy.Position != 1 {
		t.Errorf("reported: %v, want one *BusyError for the first in the queue", reported)
	}
	mustRelease(t, s, next)
}
