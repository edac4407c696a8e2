package driver

import (
	"log/slog"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// cleanedUp returns the release that a failed attempt sends to a node that granted the lock.
func cleanedUp(t *testing.T, r store.Lease) Question {
	released := make(chan Question, 1)
	k := &Driver[Question]{
		Encode:      func(q, _ Question) Question { return q },
		NodeTimeout: func(time.Duration) time.Duration { return time.Hour },
		Clock:       clock.System(),
		Logger:      slog.New(slog.DiscardHandler),
	}
	for i := range 3 {
		k.Nodes = append(k.Nodes, &splitting{i, released})
	}
	if _, err := k.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err == nil {
		t.Fatal("granted by one node of three, want an error")
	}
	return <-released
}

// splitting is a node that grants the lock if it is the first. On the others another owner
// has it.
type splitting struct {
	index    int
	released chan<- Question
}

func (s *splitting) Addr() string { return "node" }

func (s *splitting) Put(c Call[Question]) error {
	q := c.Payload
	a := Reply{Kind: quorum.No, Report: store.NodeOutcome{Outcome: store.Taken, Holder: store.Holder{Owner: "x"}, ExpiresIn: time.Minute}}
	if s.index == 0 {
		a = Reply{Kind: quorum.Yes, Token: 1, Report: store.NodeOutcome{Outcome: store.Granted}}
	}
	if q.Op == quorum.Release {
		s.released <- q
	}
	go c.To.Receive(s.index, c.Tag, a)
	return nil
}

func (s *splitting) Flush() {}

// An attempt that fails undoes only its own grants. If its owner is not new, other attempts
// may have grants.
func TestFailedAttemptUndoesItsOwn(t *testing.T) {
	for attempt, undo := range map[string]bool{"": false, "second": true} {
		r := store.Lease{Name: "a", Owner: "deploy", Attempt: attempt, TTL: time.Minute}
		if q := cleanedUp(t, r); q.Undo != undo || q.Lease.Attempt != attempt {
			t.Errorf("attempt %q: the node is sent %+v, want undo %v of that attempt", attempt, q, undo)
		}
	}
}
