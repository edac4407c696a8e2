package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// The text of a BusyError names the lock, its holder, how long it lasts and how many
// waiters are ahead, in words that need no context.
func TestBusyErrorText(t *testing.T) {
	holder := store.Holder{Owner: "0123456789abcdef"}
	for _, c := range []struct {
		err  store.BusyError
		want string
	}{
		{store.BusyError{ExpiresIn: 2 * time.Second, Position: 1}, ", expires in 2s unless renewed; this caller is next in the queue"},
		{store.BusyError{ExpiresIn: 2 * time.Second, Position: 4}, ", expires in 2s unless renewed; waiters ahead in the queue: 3"},
		{store.BusyError{ExpiresIn: -1}, ", without an expiry: another kind of client made it, and it stays until it is deleted"},
		{store.BusyError{Err: context.DeadlineExceeded}, " (context deadline exceeded)"},
	} {
		c.err.Name, c.err.Holder = "jobs", holder
		if got, want := c.err.Error(), `lock "jobs" is held by `+holder.String()+c.want; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	holder.Waiting = true
	for position, end := range []string{", which waits ahead in the queue", ", which waits too; this caller is next in the queue", ", which waits too; waiters ahead in the queue: 1"} {
		err := store.BusyError{Name: "jobs", Holder: holder, ExpiresIn: time.Second, Position: position}
		if got, want := err.Error(), `lock "jobs" is reserved for `+holder.String()+end; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// If quarantine prevents a quorum, the error names the command that ends it. Otherwise it
// does not, since the command would not help.
func TestQuarantineNamesTheWayOut(t *testing.T) {
	granted := store.NodeOutcome{Node: "a", Outcome: store.Granted}
	quarantined := store.NodeOutcome{Node: "b", Outcome: store.Quarantined, ExpiresIn: 1e9}
	unreachable := store.NodeOutcome{Node: "c", Outcome: store.Unreachable}
	for _, c := range []struct {
		nodes []store.NodeOutcome
		need  int
		named bool
	}{
		{[]store.NodeOutcome{quarantined}, 1, true},
		{[]store.NodeOutcome{granted, quarantined, quarantined}, 2, true},
		{[]store.NodeOutcome{granted, quarantined, unreachable}, 2, true},
		{[]store.NodeOutcome{unreachable, quarantined, unreachable}, 2, false},
		{[]store.NodeOutcome{granted, unreachable, unreachable}, 2, false},
	} {
		err := &store.QuorumError{Op: "acquire", Name: "x", Need: c.need, Nodes: c.nodes}
		if got := strings.Contains(err.Error(), "ootstrap"); got != c.named {
			t.Errorf("%v: names bootstrap: %v, want %v", err, got, c.named)
		}
	}
}
