// Package driver runs the quorum machines: it carries their messages to nodes and
// their verdicts to callers. It does not know what a node is. The Redis store brings
// real nodes and the simulator its own, and both run this code.
//
// The package starts no goroutines and waits for no node that is not needed. The
// goroutine that delivers a reply steps the machine, and a caller waits only for the
// verdict.
package driver

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Driver asks a majority of nodes for locks. P is the payload of its calls. It is safe for
// concurrent use. Its fields are set before the first use.
type Driver[P any] struct {
	Nodes []Node[P]
	// Sets are sets of nodes: a majority of each is needed. See quorum.Config.
	Sets [2]quorum.Set
	// Encode makes a payload of a question. It may reuse the memory of old, a payload
	// that is no longer needed, or the zero P.
	Encode func(q Question, old P) P
	// EncodeRenewals makes one payload of the renewals of the first n leases, as many
	// as fit together, and may reuse the memory of old. The leases are sorted so that
	// those of one TTL are adjacent. Nil: each lease has a payload of its own.
	EncodeRenewals func(leases []store.Lease, old P) (payload P, n int)
	// Barge has waiters notified when the lock is free, and compete for it. A waiter that has lost
	// that competition for some time is handed the lock all the same. Otherwise the lock is
	// handed to the first waiter.
	Barge bool
	// NodeTimeout returns how long a node may take to answer a request of that TTL.
	NodeTimeout func(ttl time.Duration) time.Duration
	Clock       clock.Clock
	Logger      *slog.Logger
	// Clocks watches the clocks of the nodes. Nil: they are not watched.
	Clocks *Clocks
	// Wall is the time of day. Nil: that of this machine. Simulations set it.
	Wall func() time.Time
	// Jitter returns a random pause of at most d and not much less. Nil: the driver
	// draws it. Simulations set it.
	Jitter func(d time.Duration) time.Duration
	// Closing, once closed, ends all waits with store.ErrClosed. It may be nil.
	Closing <-chan struct{}

	waiters   waiters[P]
	sightings sightings
	uncounted uncounted

	// Pools of attempts and ballots. Memory would otherwise be much of the cost of
	// a lock.
	attempts, ballots sync.Pool
}

// payloadOf encodes a question in memory of its own.
func payloadOf[P any](k *Driver[P], q Question) P {
	var none P
	return k.Encode(q, none)
}

func (k *Driver[P]) config(r store.Lease) quorum.Config {
	return quorum.Config{Nodes: len(k.Nodes), NodeTimeout: k.NodeTimeout(r.TTL), Sets: k.Sets}
}

// flush makes all nodes send the calls that were put.
func (k *Driver[P]) flush() {
	for _, n := range k.Nodes {
		n.Flush()
	}
}

// readInline reads the replies of the node, if it is the only one and an InlineReader.
func (k *Driver[P]) readInline(ctx context.Context, over <-chan struct{}, waits func() bool) {
	if len(k.Nodes) > 1 {
		return
	}
	if n, ok := k.Nodes[0].(InlineReader); ok {
		n.ReadInline(ctx, over, waits)
	}
}

// receivedAt is when a reply arrived.
func (k *Driver[P]) receivedAt(a Reply) clock.Instant {
	if a.At == 0 {
		return k.Clock.Now()
	}
	return a.At
}

// ticked makes the caller notice that a tick has put an element into over. One that reads inline waits
// for replies only.
func (k *Driver[P]) ticked(over <-chan struct{}) {
	if n, ok := k.Nodes[0].(InlineReader); ok && len(over) > 0 {
		n.InterruptInline()
	}
}

// checkClock compares the clock in a node's reply with ours. The request left after sent.
// The error says why the grants of the node do not count at present.
func (k *Driver[P]) checkClock(node int, a Reply, sent, received clock.Instant) *jumpError {
	if a.Clock == 0 || k.Clocks == nil {
		return nil
	}
	return k.Clocks.Observe(node, k.Nodes[node].Addr(), sent, received, a.Clock)
}

// await returns when over has an element: there is a verdict. If ctx ends or closing is closed
// before, it calls cancel, which brings one.
func await(ctx context.Context, closing, over <-chan struct{}, longest time.Duration, cancel func(quorum.Event)) {
	select {
	case <-over:
		return
	case <-clock.DoneWithin(ctx, longest):
	case <-closing:
	}
	cancel(quorum.Event{Kind: quorum.Cancel})
	<-over
}

// alarm has a machine stepped when it asks for a tick. Its timer runs on when the memory of the
// machine is reused: to fire it for nothing now and then costs less than to set and to stop it
// for each call.
type alarm struct {
	timer *time.Timer
	at    clock.Instant // when the timer fires; past: it may be set for later, or not at all
}

// newAlarm returns an alarm that is not set, and calls tick.
func newAlarm(tick func()) alarm {
	t := time.AfterFunc(time.Hour, tick)
	t.Stop()
	return alarm{timer: t}
}

// set has the timer fire at the given time, or earlier; with later, not earlier.
func (t *alarm) set(at, now clock.Instant, later bool) {
	if t.at <= now || at < t.at || later && at > t.at {
		t.at = at
		t.timer.Reset(max(at.Sub(now), 1))
	}
}

// clearOutcomes returns n outcomes that are Pending, in the memory of old.
func clearOutcomes(old []store.NodeOutcome, n int) []store.NodeOutcome {
	blank := slices.Grow(old[:0], n)[:n]
	clear(blank)
	return blank
}
