package conn

import (
	"context"
	"math"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// inlineReader lets a waiting or asking goroutine read the replies inline. If a client has one
// server and sends one request after the other, the caller itself reads the answer, and a
// waiter reads the pushes: to hand them over from another goroutine takes as long as the
// server takes to answer. In all other cases, and soon after the last answer, the
// connection's own goroutine reads, which also notices when the server closes the
// connection. With several servers inline reading saves little: most of the time passes
// in the servers.
//
// All fields are guarded by the Peer's Mu, except those marked as the reader's.
type inlineReader[C any] struct {
	p *Pipe[C]

	paused      bool          // the connection's goroutine does not read
	active      bool          // there is an inline reader
	wakeUp      chan struct{} // makes the connection's goroutine read again
	most        int           // largest number in flight since nothing was
	single      int           // answers in a row to calls that were alone in flight
	idle        *time.Timer   // ends inline reading after a pause
	idled       bool          // idle has fired while there was an inline reader
	interrupted bool          // the inline reader must check whether to go on

	within bool // in the middle of an answer; of the reader
}

const (
	// singleFor is how many answers in a row must come to calls that were alone in flight
	// before a caller reads inline. With two callers at once, each would have to wake up
	// the connection's goroutine for the other.
	singleFor = 8
	// InlineFor is how long nobody reads while nothing is in flight.
	InlineFor = 250 * time.Millisecond
)

func (t *inlineReader[C]) begin() {
	t.wakeUp = make(chan struct{}, 1)
	t.idle = time.AfterFunc(time.Hour, t.stopIdle)
	t.idle.Stop()
}

// pause is called by the connection's goroutine after each answer, and returns when the
// goroutine must read again.
func (t *inlineReader[C]) pause() {
	p, q := t.p, t.p.peer
	idle := q.owner.Inline()
	if idle == 0 || p.Raw == nil {
		return
	}
	q.Mu.Lock()
	if t.single++; t.most > 1 {
		t.single = 0
	}
	if p.flight.n == 0 {
		t.most = 0
	}
	if t.single < singleFor || !t.quietLocked(0) || q.closed != nil {
		q.Mu.Unlock()
		return
	}
	t.paused = true
	t.idle.Reset(idle)
	q.Mu.Unlock()
	<-t.wakeUp
	p.Conn.SetReadDeadline(time.Time{}) // an inline reader may have been interrupted
}

// quietLocked reports whether no answer is awaited and at most that many waiters exist.
func (t *inlineReader[C]) quietLocked(but int64) bool {
	p := t.p
	return p.broken == nil && p.flight.n == 0 && p.again.n == 0 && !p.In.HasBuffered() && p.peer.owner.Waiters() <= but
}

// resumeLocked makes the connection's goroutine read, unless there is an inline reader,
// which will see to it.
func (t *inlineReader[C]) resumeLocked() {
	if t.paused && !t.active {
		t.paused, t.single = false, 0
		t.wakeUp <- struct{}{}
	}
}

// stopIdle makes the connection's goroutine read after nothing was asked for a while.
func (t *inlineReader[C]) stopIdle() {
	q := t.p.peer
	q.Mu.Lock()
	defer q.Mu.Unlock()
	long := q.owner.Inline()
	left := long - time.Since(t.p.used)
	switch {
	case !t.paused:
	case t.active:
		t.idled = true // it reads when the inline reader stops
	case left > 0:
		t.idle.Reset(max(left, long/4))
	default:
		t.resumeLocked()
		t.single = -8 * singleFor // inline reading gains nothing for rare requests
	}
}

// ReadInline has the caller read the connection until over has a value or ctx ends, if
// nobody reads just then. If waits is nil, it reads answers only, and as long as any are
// awaited; otherwise also pushes, for as long as waits reports true.
func (p *Peer[C]) ReadInline(ctx context.Context, over <-chan struct{}, waits func() bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	w := p.pipe
	if w == nil || !w.inline.paused || w.inline.active || waits == nil && w.flight.n == 0 {
		return
	}
	t := &w.inline
	t.active, t.interrupted = true, false
	longest := w.patience // without an answer, the connection ends by then
	if waits != nil {
		longest = math.MaxInt64
	}
	p.Mu.Unlock()
	done := func() bool { return true }
	if clock.DoneWithin(ctx, longest) != nil {
		done = context.AfterFunc(ctx, p.InterruptInline)
	}
	ok := t.readUntil(ctx, over, waits)
	done()
	p.Mu.Lock()
	t.active, ok = false, ok && !t.interrupted
	others := int64(0)
	if waits != nil { // the caller is one of the waiters, and goes on if its wait is not over
		ok, others = ok && len(over) > 0, 1
	}
	switch {
	case !ok || !t.quietLocked(others) || p.closed != nil:
		t.resumeLocked()
	case t.idled:
		t.idled = false
		t.idle.Reset(p.owner.Inline())
	}
}

// Listen makes the connection's goroutine read, for calls whose callers do not.
func (p *Peer[C]) Listen() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.pipe != nil {
		p.pipe.inline.resumeLocked()
	}
}

// InterruptInline makes the inline reader check whether to go on.
func (p *Peer[C]) InterruptInline() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if w := p.pipe; w != nil && w.inline.active {
		w.inline.interrupted = true
		w.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// readUntil reads inline until over has a value or ctx ends. It reports whether the
// connection is in order; if not, the connection's goroutine gets the same error.
func (t *inlineReader[C]) readUntil(ctx context.Context, over <-chan struct{}, waits func() bool) (ok bool) {
	for len(over) == 0 && ctx.Err() == nil && t.keepsReading(waits) {
		if err := t.p.In.Wait(); IsTimeout(err) {
			continue // it was interrupted
		} else if err != nil {
			return false
		}
		t.within = true
		err := t.p.reader.next()
		t.within = false
		if err != nil {
			t.p.Abandon(err)
			return false
		}
	}
	return true
}

// keepsReading reports whether the inline reader has more to read.
func (t *inlineReader[C]) keepsReading(waits func() bool) bool {
	t.p.peer.Mu.Lock()
	interrupted, awaited := t.interrupted, t.p.flight.n > 0
	t.p.peer.Mu.Unlock()
	return !interrupted && (awaited || waits != nil && waits())
}
