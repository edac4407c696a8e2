package redis

import "time"

// turns is who reads the answers. Where a client has one server, and asks it one
// thing after the other, whoever asks reads the answer as well: to have another
// goroutine read it and wake up who waits takes as long as the server does. For all
// else, and soon after the last answer, it is the connection's own goroutine, which
// also sees when the server ends the connection.
//
// Guarded by the node's mutex, but for what is of whoever reads.
type turns struct {
	paused   bool          // the connection's goroutine does not read
	attended bool          // somebody else does
	carryOn  chan struct{} // has the connection's goroutine read again
	most     int           // in flight at once, since there was nothing
	alone    int           // so many answers came that nothing else was in flight with
	idle     *time.Timer   // runs out

	within bool      // an answer; of whoever reads
	until  time.Time // the deadline of reading; the same
}

const (
	// attendance is how long somebody who asks reads: then it looks at its context.
	attendance = 2 * time.Millisecond
	// aloneFor answers it has to be so before somebody who asks reads: with two who
	// ask at once, each would have to wake up the connection's goroutine for the other.
	aloneFor = 8
	// idleAfter is how long nobody reads when nothing is in flight.
	idleAfter = time.Millisecond
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
	if len(n.s.nodes) > 1 || w.raw == nil {
		return
	}
	n.mu.Lock()
	if t.alone++; t.most > 1 {
		t.alone = 0
	}
	if w.flight.n == 0 {
		t.most = 0
	}
	if t.alone < aloneFor || !w.quiet() || n.closed {
		n.mu.Unlock()
		return
	}
	t.paused = true
	t.idle.Reset(idleAfter)
	n.mu.Unlock()
	<-t.carryOn
	w.limit(0)
}

// quiet says whether there is nothing to read. The mutex is held.
func (w *wire) quiet() bool {
	return w.broken == nil && w.flight.n == 0 && w.again.n == 0 && w.in.in.Buffered() == 0
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
	t, left := &w.turns, idleAfter-time.Since(w.used)
	switch {
	case !t.paused:
	case t.attended || left > 0:
		t.idle.Reset(max(left, idleAfter/4))
	default:
		w.resume()
		t.alone = -8 * aloneFor // who asks now and then gains nothing
	}
}

// attend reads answers for a moment, until there is something in over, or nothing
// left to read. The node's mutex is held, but not meanwhile.
func (w *wire) attend(over <-chan struct{}) {
	t := &w.turns
	if !t.paused || t.attended || w.flight.n == 0 {
		return
	}
	t.attended = true
	w.n.mu.Unlock()
	ok := w.readUntil(over)
	w.n.mu.Lock()
	if t.attended = false; !ok || !w.quiet() || w.n.closed {
		w.resume()
	}
}

// readUntil says whether all is well; if not the connection's goroutine finds the
// same.
func (w *wire) readUntil(over <-chan struct{}) (ok bool) {
	if time.Until(w.turns.until) < attendance/2 {
		w.limit(attendance)
	}
	for len(over) == 0 && w.awaited() {
		if _, err := w.in.in.Peek(1); err != nil {
			return false
		}
		w.turns.within = true
		v, err := w.in.next()
		w.turns.within = false
		if err == nil && !w.hear(v) {
			err = errUnasked
		}
		if err != nil {
			w.abandon(err)
			return false
		}
	}
	return true
}

func (w *wire) awaited() bool {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	return w.flight.n > 0
}

// limit sets how long to wait for answers; 0: for ever.
func (w *wire) limit(d time.Duration) {
	w.turns.until = time.Time{}
	if d > 0 {
		w.turns.until = time.Now().Add(d)
	}
	w.conn.SetReadDeadline(w.turns.until)
}
