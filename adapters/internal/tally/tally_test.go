package tally_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/internal/tally"
	"github.com/leasehold-dev/leasehold/store"
)

// Each event of a story changes the counts as told in its row.
func TestTally(t *testing.T) {
	var ours tally.Tally
	lost := &leasehold.LostError{Cause: leasehold.LostExpired}
	denied := &leasehold.LostError{Cause: leasehold.LostDenied}
	for i, step := range []struct {
		e    leasehold.Event
		want tally.Change
	}{
		{leasehold.Event{Kind: leasehold.Acquired, Call: 1, Name: "a", Owner: "o", Token: 1}, tally.Change{Leases: 1}},
		{leasehold.Event{Kind: leasehold.Waiting, Call: 2, Name: "a", Waited: time.Second}, tally.Change{Waiters: 1, Began: true}},
		{leasehold.Event{Kind: leasehold.Waiting, Call: 2, Name: "a", Waited: 2 * time.Second}, tally.Change{}},
		{leasehold.Event{Kind: leasehold.Waiting, Call: 3, Name: "a", Waited: 0}, tally.Change{Waiters: 1, Began: true}},
		// Two goroutines report a hand-off, in either order.
		{leasehold.Event{Kind: leasehold.Handed, Call: 2, Name: "a", Owner: "o", Token: 2, Waited: 5 * time.Second}, tally.Change{Leases: 1, Waiters: -1, Ended: true, Waited: 4 * time.Second}},
		{leasehold.Event{Kind: leasehold.Released, Name: "a", Owner: "o", Token: 1}, tally.Change{Leases: -1, Over: true}},
		{leasehold.Event{Kind: leasehold.RenewalFailed, Name: "a", Owner: "o", Token: 2}, tally.Change{}},
		{leasehold.Event{Kind: leasehold.Lost, Name: "a", Owner: "o", Token: 2, Err: lost}, tally.Change{Leases: -1, Over: true, Loss: "expired"}},
		{leasehold.Event{Kind: leasehold.Released, Name: "a", Owner: "o", Token: 2, Err: lost}, tally.Change{}},
		{leasehold.Event{Kind: leasehold.Failed, Call: 3, Name: "a", Waited: time.Minute}, tally.Change{Waiters: -1, Ended: true, Waited: time.Minute}},
		{leasehold.Event{Kind: leasehold.Failed, Call: 4, Name: "a"}, tally.Change{}},
		// The store no longer had the lease that was released, and no loss was reported before.
		{leasehold.Event{Kind: leasehold.Handed, Call: 5, Name: "a", Owner: "p", Token: 3}, tally.Change{Leases: 1}},
		{leasehold.Event{Kind: leasehold.Released, Name: "a", Owner: "p", Token: 3, Err: denied}, tally.Change{Leases: -1, Over: true, Loss: "denied"}},
		// Two leases of the same fixed owner.
		{leasehold.Event{Kind: leasehold.Acquired, Call: 6, Name: "a", Owner: "f", Token: 4}, tally.Change{Leases: 1}},
		{leasehold.Event{Kind: leasehold.Acquired, Call: 7, Name: "a", Owner: "f", Token: 4}, tally.Change{Leases: 1}},
		{leasehold.Event{Kind: leasehold.Released, Name: "a", Owner: "f", Token: 4}, tally.Change{Leases: -1, Over: true}},
		{leasehold.Event{Kind: leasehold.Released, Name: "a", Owner: "f", Token: 4}, tally.Change{Leases: -1, Over: true}},
	} {
		if got := ours.Step(step.e); got != step.want {
			t.Errorf("step %d, %v: %+v, want %+v", i, step.e.Kind, got, step.want)
		}
	}
}

// The words of labels are those of the table.
func TestWords(t *testing.T) {
	busy := &leasehold.BusyError{Err: context.DeadlineExceeded}
	for _, c := range []struct {
		err  error
		want string
	}{
		{busy, "busy"},
		{&leasehold.BusyError{Err: context.Canceled}, "canceled"},
		{fmt.Errorf("wait: %w", context.DeadlineExceeded), "timeout"},
		{&leasehold.QuorumError{}, "quorum"},
		{&leasehold.LostError{Cause: leasehold.LostLateGrant}, "late_grant"},
		{store.ErrClosed, "closed"},
		{errors.New("disk full"), "store"},
	} {
		if got := tally.Reason(c.err); got != c.want {
			t.Errorf("Reason(%v) = %q, want %q", c.err, got, c.want)
		}
	}
	for cause, want := range map[leasehold.LossCause]string{
		leasehold.LostExpired: "expired", leasehold.LostDenied: "denied", leasehold.LostMaxHold: "max_hold", leasehold.LostLateGrant: "late_grant",
	} {
		if got := tally.Cause(&leasehold.LostError{Cause: cause}); got != want {
			t.Errorf("Cause of a loss by %v: %q, want %q", cause, got, want)
		}
	}
}
