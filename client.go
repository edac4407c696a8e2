package leasehold

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/waits"
	"github.com/leasehold-dev/leasehold/store"
)

// Client asks one store for locks and renews the leases it is granted. It is safe
// for concurrent use; make one per store and share it. A Client has no Close: it
// runs goroutines only while leases are held or waited for, a few however many
// leases there are, and some more while the store does not answer. The store stays the caller's to close, after the leases
// are released.
type Client struct {
	store   *store.Store
	holds   *holds.Holds  // what it was granted,
	queues  *waits.Queues // and what it waits for
	observe func(context.Context, Event)
	trace   func(context.Context) string
}

// New returns a Client of s. It sends nothing. A nil o means the defaults.
func New(s *store.Store, o *Options) *Client {
	if o == nil {
		o = &Options{}
	}
	c := &Client{store: s, observe: o.Observer, trace: o.Trace}
	held := holds.Config{Store: s, Clock: o.Clock, RetryDelay: o.RetryDelay, Log: o.Logger, LostError: lostError}
	if held.Clock == nil {
		held.Clock = clock.System()
	}
	if held.RetryDelay == nil {
		held.RetryDelay = defaultRetryDelay
	}
	if c.observe != nil {
		held.Observe = c.observeHold
	}
	c.holds = holds.New(held)
	c.queues = waits.New(c.holds)
	return c
}

var defaultRetryDelay = Backoff(10*time.Millisecond, 250*time.Millisecond)

// mustHave panics if ctx is nil, as the functions of package context do: a
// program that passes none has to be changed, and finds out at the first call.
func mustHave(ctx context.Context) {
	if ctx == nil {
		panic("leasehold: nil Context")
	}
}
