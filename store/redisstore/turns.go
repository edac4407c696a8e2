package redisstore

import (
	"context"
	"time"
)

// turns is who reads the answers. Where a client has one server, and asks it one
// thing after the other, whoever asks reads the answer as well, and who stands in line
// what the server says of that: to have another goroutine read it and wake up who waits
// takes as long as the server does. For all else, and soon after the last answer, it is
// the connection's own goroutine, which also sees when the server ends the connection.
// With several servers it would save little: they take most of the time themselves.
//
// A deadline that is nearer than all others has Go wake up a thread to wait for it. So
// none is set for each answer: one is kept for as long as it will do.
//
// Guarded by the node's mutex, but for what is of whoever reads.
type turns struct {
	paused   bool          // the connection's goroutine does not read
	attended bool          // somebody else does
	carryOn  chan struct{} // has the connection's goroutine read again
	most     int           // in flight at once, since there was nothing
	alone    int           // so many answers came that nothing else was in flight with
	idle     *time.Timer   // runs out
	idled    bool          // it has, while somebody attended
	called   bool          // who attends is to look whether that is still wanted

	within bool      // an answer; of whoever reads
	until  time.Time // the deadline of reading; the same
}

const (
	// aloneFor answers it has to be so before somebody who asks reads: with two who
	// ask at once, each would have to wake up the connection's goroutine for the other.
	aloneFor = 8
	// idleAfter is how long nobody reads when nothing is in flight.
	idleAfter = 250 * time.Millisecond
)

func (t *turns) begin(w *wire) {
	t.carryOn = make(chan struct{}, 1)
	t.idle = time.AfterFunc(time.Hour, w.idles)
	t.idle.Stop()
}

// pause is called by the connection's goroutine after each answer, and returns
// when it is to read again.
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

// quiet says whether nobody awaits anything, but for so many who stand in line. The
// mutex is held.
func (w *wire) quiet(but int64) bool {
	return w.broken == nil && w.flight.n == 0 && w.again.n == 0 && w.in.in.Buffered() == 0 && w.n.s.waiting.Load() <= but
}

// resume has the connection's goroutine read, unless somebody else does, who then
// sees to it. The mutex is held.
func (w *wire) resume() {
	if t := &w.turns; t.paused && !t.attended {
		t.paused, t.alone = false, 0
		t.carryOn <- struct{}{}
	}
}

// idles has it read when nobody has asked anything for a while.
func (w *wire) idles() {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	t, long := &w.turns, w.n.s.idle
	left := long - time.Since(w.used)
	switch {
	case !t.paused:
	case t.attended:
		t.idled = true // and is to do so again when it is over
	case left > 0:
		t.idle.Reset(max(left, long/4))
	default:
		w.resume()
		t.alone = -8 * aloneFor // who asks now and then gains nothing
	}
}

// ReadInline implements driver.InlineReader.
func (n *node) ReadInline(ctx context.Context, over <-chan struct{}, left func() time.Duration) {
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
	if left != nil { // who stands in line is one of those who do, and goes on if it is not over
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

// call has who attends look whether that is still wanted.
func (n *node) call() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.wire; w != nil && w.turns.attended {
		w.turns.called = true
		w.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// readUntil says whether all is well; if not the connection's goroutine finds the
// same.
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

// attends says whether there is more to read for who attends, and limits for how
// long. While something is in flight the server's patience does that.
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
		least = most / 2 // to set it each time takes long
	}
	if rest := time.Until(t.until); most <= 0 || least <= rest && rest <= most {
		return most > 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !t.called { // or else it would undo what whoever called has set
		w.limit(most)
	}
	return !t.called
}

// limit sets how long to wait for answers; 0: for ever.
func (w *wire) limit(d time.Duration) {
	w.turns.until = time.Time{}
	if d > 0 {
		w.turns.until = time.Now().Add(d)
	}
	w.conn.SetReadDeadline(w.turns.until)
}
