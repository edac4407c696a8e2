package leasehold

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
)

// Event is something that happened to a lock of a Client: see Options.Observer.
//
// Every Acquire, Try and Do causes exactly one of Acquired, Handed and Failed, unless it re-enters a lease; before it, any number of Waiting. A grant
// causes one Lost if it is lost before it is released, and one Released when the
// last of its leases is released; before these, any number of RenewalFailed. A Downgrade
// that succeeds causes Released for the writer's lease, or Lost if other leases have
// re-entered it meanwhile, and Acquired for the reader's.
type Event struct {
	Kind EventKind
	// Name is the name of the lock.
	Name string
	// Call numbers the calls of Acquire, Try, Do and Downgrade, so that a Waiting and the
	// outcome of the same call can be matched: no other call in this process has the same number.
	// It is 0 for RenewalFailed, Lost and Released.
	Call uint64
	// Owner and Token are those of the lease; empty and 0 for Waiting and Failed.
	Owner string
	Token Token
	// Position is the place in the queue, as in BusyError; set for Waiting.
	Position int
	// Waited is how long the goroutine has waited; set for all kinds but RenewalFailed,
	// Lost and Released.
	Waited time.Duration
	// Held is how long the lease was held; set for RenewalFailed, Lost and Released.
	Held time.Duration
	// Err is the reason to wait, the error of Acquire, the error of the renewal, the
	// loss, or the error of Release. It is nil if all is well.
	Err error
}

// EventKind says what an Event is about.
type EventKind uint8

// The kinds of events. More may be added.
const (
	// Waiting: a goroutine has to wait for the lock, or the cause has changed:
	// another holder, another position in the queue, nodes that cannot be reached,
	// or nodes in quarantine. A cause that has not changed is not repeated. If more than 64
	// goroutines wait for a lock, they are told of changes that follow each other quickly
	// only together.
	Waiting EventKind = iota + 1
	// Acquired: the store granted the lock when it was asked for it.
	Acquired
	// Handed: this process waited in the store's queue, and the lock was handed to it by
	// another process or another goroutine of this one.
	Handed
	// Failed: no lease was obtained; Err says why.
	Failed
	// Lost: the lease ended before it was released.
	Lost
	// Released: the last lease of a grant was released.
	Released
	// RenewalFailed: a renewal failed, or its outcome is unknown. The lease is still
	// valid, and the renewal is tried again. A renewal that shows that the lease is gone
	// causes Lost instead.
	RenewalFailed
)

var eventNames = [...]string{"unknown", "waiting", "acquired", "handed", "failed", "lost", "released", "renewal failed"}

// String returns the kind in lower-case words, such as "acquired".
func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return eventNames[0]
}

// calls is how many calls were numbered in this process.
var calls atomic.Uint64

// call is one call of Acquire, Try or Do, for the observer and traces.
type call struct {
	number uint64
	trace  string
	began  clock.Instant
}

// begin begins a call with ctx.
func (c *Client) begin(ctx context.Context) (begun call) {
	if c.observe != nil { // otherwise nobody needs the time
		begun.began = c.holds.Clock.Now()
	}
	if c.observe != nil || c.trace != nil {
		begun.number = calls.Add(1)
	}
	if c.trace != nil {
		begun.trace = c.trace(ctx)
	}
	return begun
}

// observeOutcome tells the observer how a wait has ended. A re-entry, for which how is 0, is no
// event.
func (l *Lock) observeOutcome(ctx context.Context, call call, held *holds.Lease, how EventKind, err error) {
	c := l.c
	if c.observe == nil {
		return
	}
	e := Event{Kind: how, Name: l.name, Call: call.number, Waited: c.holds.Clock.Now().Sub(call.began), Err: err}
	switch {
	case err != nil:
		e.Kind = Failed
	case how == 0:
		return
	default:
		e.Owner, e.Token = held.Owner(), held.Token()
	}
	c.observe(ctx, e)
	if held != nil {
		held.GrantTold()
	}
}

// observeWaiting tells the observer why the lock is waited for.
func (l *Lock) observeWaiting(ctx context.Context, call call, reason error, position int) {
	l.c.observe(ctx, Event{Kind: Waiting, Name: l.name, Call: call.number, Position: position, Waited: l.c.holds.Clock.Now().Sub(call.began), Err: reason})
}

// observeHold tells the observer what became of a lease after it was granted.
func (c *Client) observeHold(ctx context.Context, l *holds.Lease, what holds.Change, held time.Duration, err error) {
	kind := [...]EventKind{holds.Lost: Lost, holds.Released: Released, holds.RenewalFailed: RenewalFailed}[what]
	c.observe(ctx, Event{Kind: kind, Name: l.Name(), Owner: l.Owner(), Token: l.Token(), Held: held, Err: err})
}
