package redisstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
)

// inlineReader lets a waiting or asking goroutine read the replies inline. If a client has one
// server and sends one request after the other, the caller itself reads the answer, and a
// waiter reads the pushes: to hand them over from another goroutine takes as long as the
// server takes to answer. In all other cases, and soon after the last answer, the
// connection's own goroutine reads, which also notices when the server closes the
// connection. With several servers inline reading saves little: most of the time passes
// in the servers.
//
// A deadline nearer than all others makes Go wake up a thread to wait for it. So the
// deadline is not set for each answer, but kept for as long as it serves.
//
// All fields are guarded by the node's mutex, except those marked as the reader's.
type inlineReader struct {
	paused      bool          // the connection's goroutine does not read
	active      bool          // there is an inline reader
	wakeUp      chan struct{} // makes the connection's goroutine read again
	most        int           // largest number in flight since nothing was
	single      int           // answers in a row to calls that were alone in flight
	idle        *time.Timer   // ends inline reading after a pause
	idled       bool          // idle has fired while there was an inline reader
	interrupted bool          // the inline reader must check whether to go on

	within bool      // in the middle of an answer; of the reader
	until  time.Time // the read deadline; of the reader
}

const (
	// singleFor is how many answers in a row must come to calls that were alone in flight
	// before a caller reads inline. With two callers at once, each would have to wake up
	// the connection's goroutine for the other.
	singleFor = 8
	// idleAfter is how long nobody reads while nothing is in flight.
	idleAfter = 250 * time.Millisecond
)

func (t *inlineReader) begin(w *wire) {
	t.wakeUp = make(chan struct{}, 1)
	t.idle = time.AfterFunc(time.Hour, w.stopIdle)
	t.idle.Stop()
}

// pause is called by the connection's goroutine after each answer, and returns when the
// goroutine must read again.
func (w *wire) pause() {
	n, t := w.n, &w.inline
	if !n.s.topology.readsInline(n.s) || w.Raw == nil {
		return
	}
	n.mu.Lock()
	if t.single++; t.most > 1 {
		t.single = 0
	}
	if w.flight.n == 0 {
		t.most = 0
	}
	if t.single < singleFor || !w.quietLocked(0) || n.closed {
		n.mu.Unlock()
		return
	}
	t.paused = true
	t.idle.Reset(n.s.idle)
	n.mu.Unlock()
	<-t.wakeUp
	w.limit(0)
}

// quietLocked reports whether no answer is awaited and at most that many waiters exist.
func (w *wire) quietLocked(but int64) bool {
	return w.broken == nil && w.flight.n == 0 && w.again.n == 0 && !w.In.HasBuffered() && w.n.s.waiting.Load() <= but
}

// resumeLocked makes the connection's goroutine read, unless there is an inline reader,
// which will see to it.
func (w *wire) resumeLocked() {
	if t := &w.inline; t.paused && !t.active {
		t.paused, t.single = false, 0
		t.wakeUp <- struct{}{}
	}
}

// stopIdle makes the connection's goroutine read after nothing was asked for a while.
func (w *wire) stopIdle() {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	t, long := &w.inline, w.n.s.idle
	left := long - time.Since(w.used)
	switch {
	case !t.paused:
	case t.active:
		t.idled = true // it reads when the inline reader stops
	case left > 0:
		t.idle.Reset(max(left, long/4))
	default:
		w.resumeLocked()
		t.single = -8 * singleFor // inline reading gains nothing for rare requests
	}
}

// Listen implements driver.Listener.
func (n *node) ReadInline(ctx context.Context, over <-chan struct{}, left func() time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wire
	if w == nil || !w.inline.paused || w.inline.active || left == nil && w.flight.n == 0 {
		return
	}
	t := &w.inline
	t.active, t.interrupted = true, false
	n.mu.Unlock()
	done := func() bool { return true }
	if ctx.Done() != nil {
		done = context.AfterFunc(ctx, n.interruptInline)
	}
	ok := w.readUntil(ctx, over, left)
	done()
	n.mu.Lock()
	t.active, ok = false, ok && !t.interrupted
	others := int64(0)
	if left != nil { // the caller is one of the waiters, and goes on if its wait is not over
		ok, others = ok && len(over) > 0, 1
	}
	switch {
	case !ok || !w.quietLocked(others) || n.closed:
		w.resumeLocked()
	case t.idled:
		t.idled = false
		t.idle.Reset(n.s.idle)
	}
}

// interruptInline makes the inline reader check whether to go on.
func (n *node) interruptInline() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.wire; w != nil && w.inline.active {
		w.inline.interrupted = true
		w.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// readUntil reads inline until over is closed or ctx ends. It reports whether the
// connection is in order; if not, the connection's goroutine gets the same error.
func (w *wire) readUntil(ctx context.Context, over <-chan struct{}, left func() time.Duration) (ok bool) {
	for len(over) == 0 && ctx.Err() == nil && w.keepReading(left) {
		if err := w.In.Wait(); conn.IsTimeout(err) {
			continue
		} else if err != nil {
			return false
		}
		w.inline.within = true
		err := w.next()
		w.inline.within = false
		if err != nil {
			w.abandon(err)
			return false
		}
	}
	return true
}

// keepReading reports whether the inline reader has more to read, and limits how long it may
// read. While something is in flight, the timeout of the oldest call is the limit.
func (w *wire) keepReading(left func() time.Duration) bool {
	n, t := w.n, &w.inline
	n.mu.Lock()
	called, awaited := t.interrupted, w.flight.n > 0
	n.mu.Unlock()
	if called {
		return false
	}
	most, least := time.Minute, time.Duration(1)
	if !awaited {
		if left == nil {
			return false
		}
		most = left()
		least = most / 2 // setting it is slow, so not each time
	}
	if rest := time.Until(t.until); most <= 0 || least <= rest && rest <= most {
		return most > 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !t.interrupted { // otherwise it would undo the deadline that call has set
		w.limit(most)
	}
	return !t.interrupted
}

// limit sets the read deadline; 0 means none.
func (w *wire) limit(d time.Duration) {
	w.inline.until = time.Time{}
	if d > 0 {
		w.inline.until = time.Now().Add(d)
	}
	w.Conn.SetReadDeadline(w.inline.until)
}
