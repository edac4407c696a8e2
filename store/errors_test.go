package store_test

import (
	"context"
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
}
