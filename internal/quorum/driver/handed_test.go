package driver

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// holding is a node on which another owner has the lock. It replies when its calls are
// flushed.
type holding struct {
	index int
	asked []Call[Question]
}

func (h *holding) Addr() string { return "a node" }

func (h *holding) Put(c Call[Question]) error {
	h.asked = append(h.asked, c)
	return nil
}

func (h *holding) Flush() {
	calls := h.asked
	h.asked = nil
	for _, c := range calls {
		taken := store.NodeOutcome{Outcome: store.Taken, Holder: store.Holder{Owner: "another"}, ExpiresIn: time.Hour}
		c.To.Receive(h.index, c.Tag, Reply{Kind: quorum.No, Position: 1, Report: taken})
	}
}

// OnGranted names the lock of each grant to a waiter, also of one that arrives after the
// waiter has its majority and before the waiter's goroutine runs again.
func TestEveryGrantToAWaiterIsNamed(t *testing.T) {
	k := &Driver[Question]{
		Encode:      func(q, _ Question) Question { return q },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}
	for i := range 3 {
		k.Nodes = append(k.Nodes, &holding{index: i})
	}
	var named []string
	// The grants arrive while the waiter's own goroutine reports the holder.
	grants := func(error) {
		for node := range k.Nodes {
			now := k.Clock.Now()
			named = append(named, k.OnGranted(node, "waiter", Reply{Token: 7, Stamp: now, At: now}))
		}
	}
	if _, err := k.Wait(t.Context(), store.WaitRequest{Lease: store.Lease{Name: "a", Owner: "waiter", TTL: time.Minute}}, grants); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "a", "a"}; !slices.Equal(named, want) {
		t.Errorf("the grants are named %q, want %q", named, want)
	}
}
