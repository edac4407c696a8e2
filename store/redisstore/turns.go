package redisstore

import (
	"context"
	"time"
)

// turns lets a waiting or asking goroutine read the replies inline. If a client has one
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
type turns struct {
	paused   bool          // the connection's goroutine does not read
	attended bool          // there is an inline reader
	carryOn  chan struct{} // makes the connection's goroutine read again
	most     int           // largest number in flight since nothing was
	alone    int           // answers in a row to calls that were alone in flight
	idle     *time.Timer   // ends inline reading after a pause
	idled    bool          // idle has fired while there was an inline reader
	called   bool          // the inline reader must check whether to go on

	within bool      // in the middle of an answer; of the reader
	until  time.Time // the read deadline; of the reader
}

const (
	// aloneFor is how many answers in a row must come to calls that were alone in flight
	// before a caller reads inline. With two callers at once, each would have to wake up
	// the connection's goroutine for the other.
	aloneFor = 8
	// idleAfter is how long nobody reads while nothing is in flight.
	idleAfter = 250 * time.Millisecond
)

func (t *turns) begin(w *wire) {
	t.carryOn = make(chan struct{}, 1)
	t.idle = time.AfterFunc(time.Hour, w.idles)
	t.idle.Stop()
}

// pause is called by the connection's goroutine after each answer, and returns when the
// goroutine must read again.
func (w *wire) pause() {
	n, t := w.n, &w.turns
	if len(n.s.nodes) > 1 || n.s.route != nil || w.raw == nil {
		return
	}
	n.mu.Lock()
	if t.alone++; t.most > 1 {
		t.alone = 0
	}
	if w.flight.n == 0 {
		t.most = 0
	}
	if t.alone < aloneFor || !w.quiet(0) || n.closed {
		n.mu.Unlock()
		return
	}
	t.paused = true
	t.idle.Reset(n.s.idle)
	n.mu.Unlock()
	<-t.carryOn
	w.limit(0)
}

// quiet reports whether no answer is awaited and at most that many waiters exist. The
// mutex is held.
func (w *wire) quiet(but int64) bool {
	return w.broken == nil && w.flight.n == 0 && w.again.n == 0 && w.in.in.Buffered() == 0 && w.n.s.waiting.Load() <= but
}

// resume makes the connection's goroutine read, unless there is an inline reader, which
// will see to it. The mutex is held.
func (w *wire) resume() {
	if t := &w.turns; t.paused && !t.attended {
		t.paused, t.alone = false, 0
		t.carryOn <- struct{}{}
	}
}

// idles makes the connection's goroutine read after nothing was asked for a while.
func (w *wire) idles() {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	t, long := &w.turns, w.n.s.idle
	left := long - time.Since(w.used)
	switch {
	case !t.paused:
	case t.attended:
		t.idled = true // it reads when the inline reader stops
	case left > 0:
		t.idle.Reset(max(left, long/4))
	default:
		w.resume()
		t.alone = -8 * aloneFor // inline reading gains nothing for rare requests
	}
}

// Listen implements driver.Listener.
func (n *node) Listen(ctx context.Context, over <-chan struct{}, left func() time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wire
	if w == nil || !w.turns.paused || w.turns.attended || left == nil && w.flight.n == 0 {
		return
	}
	t := &w.turns
	t.attended, t.called = true, false
	n.mu.Unlock()
	done := func() bool { return true }
	if ctx.Done() != nil {
		done = context.AfterFunc(ctx, n.call)
	}
	ok := w.readUntil(ctx, over, left)
	done()
	n.mu.Lock()
	t.attended, ok = false, ok && !t.called
	others := int64(0)
	if left != nil { // the caller is one of the waiters, and goes on if its wait is not over
		ok, others = ok && len(over) > 0, 1
	}
	switch {
	case !ok || !w.quiet(others) || n.closed:
		w.resume()
	case t.idled:
		t.idled = false
		t.idle.Reset(n.s.idle)
	}
}

// call makes the inline reader check whether to go on.
func (n *node) call() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.wire; w != nil && w.turns.attended {
		w.turns.called = true
		w.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// readUntil reads inline until over is closed or ctx ends. It reports whether the
// connection is in order; if not, the connection's goroutine gets the same error.
func (w *wire) readUntil(ctx context.Context, over <-chan struct{}, left func() time.Duration) (ok bool) {
	for len(over) == 0 && ctx.Err() == nil && w.attends(left) {
		if _, err := w.in.in.Peek(1); isTimeout(err) {
			continue
		} else if err != nil {
			return false
		}
		w.turns.within = true
		err := w.next()
		w.turns.within = false
		if err != nil {
			w.abandon(err)
			return false
		}
	}
	return true
}

// attends reports whether the inline reader has more to read, and limits how long it may
// read. While something is in flight, the timeout of the oldest call is the limit.
func (w *wire) attends(left func() time.Duration) bool {
	n, t := w.n, &w.turns
	n.mu.Lock()
	called, awaited := t.called, w.flight.n > 0
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
	if !t.called { // otherwise it would undo the deadline that call has set
		w.limit(most)
	}
	return !t.called
}

// limit sets the read deadline; 0 means none.
func (w *wire) limit(d time.Duration) {
	w.turns.until = time.Time{}
	if d > 0 {
		w.turns.until = time.Now().Add(d)
	}
	w.conn.SetReadDeadline(w.turns.until)
}
