package conn

import (
	"runtime"
	"time"
)

// sender sends the calls of a Peer. At most one goroutine does so at a time: its own, or a
// caller in Flush. Its fields are guarded by Mu.
type sender[C any] struct {
	p       *Peer[C]
	ready   chan struct{} // there may be something to send
	sending bool          // a goroutine is sending
	missed  bool          // another goroutine had something to send meanwhile
	out     []byte        // buffer of the goroutine that is sending
}

// Flush sends what is enqueued, without blocking. The goroutine that enqueues a call sends
// it, together with the calls that others have enqueued, which saves waking up another
// goroutine. If the socket's buffer is full, the sending goroutine sends the rest.
func (p *Peer[C]) Flush() {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	near := p.pipe != nil && p.pipe.congestion.quickest < lookFor
	if n := p.Waiting.n; 0 < n && n < enough && p.owner.Gathers(near) {
		p.Mu.Unlock()
		runtime.Gosched() // others enqueue their calls
		p.Mu.Lock()
	}
	p.flushLocked()
}

func (p *Peer[C]) flushLocked() {
	w, s := p.pipe, &p.sender
	switch {
	case p.Waiting.n == 0:
	case s.sending:
		s.missed = true
	case w == nil || !w.writer.sendsAtOnceLocked():
		p.Wake()
	case w.holdsBackLocked(): // the usual case with many callers: the reader sends it with others
		w.paused = true
	default:
		s.sending = true
		out, more := w.writer.takeLocked(s.out[:0])
		p.Mu.Unlock()
		s.out = out
		more = w.writer.offer(out) || more
		p.Mu.Lock()
		if s.sending = false; more || s.missed {
			s.missed = false
			p.Wake()
		}
		p.owner.Sent()
	}
}

// TryHold keeps back what is enqueued, until resume is called. It fails while something is
// being sent.
func (p *Peer[C]) TryHold() (resume func(), ok bool) {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if p.sender.sending {
		return nil, false
	}
	p.sender.sending = true
	return func() {
		p.Mu.Lock()
		defer p.Mu.Unlock()
		p.sender.sending = false
		p.Wake()
	}, true
}

// run is the sending goroutine.
func (s *sender[C]) run() {
	p := s.p
	for range s.ready {
		p.owner.Rest(BeforeWrite)
		for s.flush() {
		}
		if s.closed() {
			s.fail()
			return
		}
	}
}

// flush sends some of the enqueued calls, and reports whether to continue at once.
func (s *sender[C]) flush() (more bool) {
	p := s.p
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if s.sending { // the other sender wakes us afterwards
		s.missed = true
		return false
	}
	s.sending = true
	unproven, w := s.needsProofLocked(), p.pipe
	p.Mu.Unlock()
	more = s.sendOver(w, unproven)
	p.Mu.Lock()
	more = more || s.missed
	s.sending, s.missed = false, false
	p.owner.Sent()
	return more
}

// needsProofLocked reports whether a call is enqueued that should not be sent over a
// connection that may be dead.
func (s *sender[C]) needsProofLocked() bool {
	p := s.p
	for c := range p.Waiting.All {
		if !p.owner.Repeats(c) {
			return true
		}
	}
	return false
}

// sendOver sends over w. No other goroutine may be sending. If unproven is set, it first
// tests a connection that has been idle.
func (s *sender[C]) sendOver(w *Pipe[C], unproven bool) bool {
	p := s.p
	if w == nil {
		if s.idle() {
			return false
		}
		if !s.connect() {
			s.fail()
			return false
		}
		p.owner.Connected()
		return true
	}
	if unproven && !w.writer.proven() {
		return true // the connection is dead: see what has replaced it
	}
	if len(w.writer.rest) > 0 {
		w.writer.write(w.writer.rest)
		w.writer.rest = nil
	}
	p.Mu.Lock()
	out, more := w.writer.takeLocked(s.out[:0])
	p.Mu.Unlock()
	if s.out = out; len(out) > 0 {
		w.writer.write(out)
		p.Mu.Lock()
		w.inline.resumeLocked()
		p.Mu.Unlock()
	}
	return more
}

// fail answers the calls that are enqueued for a server that cannot be used. None of them
// was sent.
func (s *sender[C]) fail() {
	p := s.p
	for {
		p.Mu.Lock()
		c, ok := p.Waiting.Pop()
		why := p.closed
		if why == nil {
			why = p.down
		}
		if ok {
			p.owner.UnsentLocked(c)
		}
		p.Mu.Unlock()
		if !ok {
			return
		}
		p.owner.Unsent(c, why)
	}
}

// idle reports whether no connection is needed.
func (s *sender[C]) idle() bool {
	p := s.p
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.Waiting.n == 0 && (!p.owner.WantsLocked() || p.closed != nil || p.down != nil && time.Now().Before(p.retryAt))
}

func (s *sender[C]) closed() bool {
	p := s.p
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.closed != nil
}

// connect makes a connection and reports whether it succeeded.
func (s *sender[C]) connect() bool {
	p := s.p
	p.Mu.Lock()
	p.dialing = true
	p.Mu.Unlock()
	w, err := p.owner.Reach()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.dialing = false
	if err == nil {
		p.UseLocked(w, time.Now())
		return true
	}
	p.setDownLocked(err, p.config.ConnectTimeout, retryPause(p.failures))
	p.failures++
	return false
}

// writer writes to one connection. It belongs to the goroutine that is sending.
type writer[C any] struct {
	p    *Pipe[C]
	rest []byte // what did not fit into the socket's buffer
	late []C    // calls that takeLocked has dropped and will answer
}

// takeLocked moves enqueued calls into flight, within limits, and appends them to out. It
// reports whether more can be sent at once. It answers calls that are too late, and unlocks Mu for
// that.
func (w *writer[C]) takeLocked(out []byte) (_ []byte, more bool) {
	p, q := w.p, w.p.peer
	if p.broken != nil {
		return out, true
	}
	now := time.Now()
	if p.again.n > 0 {
		// First all answers arrive, then calls that must be sent again are sent, and then
		// the others: no call overtakes an earlier one.
		if p.flight.n > 0 {
			return out, false
		}
		for c, ok := p.again.Pop(); ok; c, ok = p.again.Pop() {
			out = p.handler.AppendAgainLocked(c, out, now)
		}
		return out, q.Waiting.n > 0
	}
	if p.outdated != nil {
		return out, false // the next connection sends what is enqueued
	}
	if p.paused = q.Waiting.n > 0 && p.holdsBackLocked(); p.paused {
		return out, false
	}
	room := p.congestion.room()
	for w.dropLateLocked(now); q.Waiting.n > 0 && p.flight.n < room && len(out) < maxWrite; w.dropLateLocked(now) {
		out = p.handler.AppendLocked(out, room-p.flight.n, now)
	}
	p.paused = q.Waiting.n > 0 && p.flight.n >= room
	if late := w.late; late != nil {
		w.late = nil
		q.Mu.Unlock()
		for _, c := range late {
			q.owner.Unsent(c, ErrLate)
		}
		q.Mu.Lock()
	}
	return out, q.Waiting.n > 0 && !p.paused
}

// dropLateLocked removes calls from the front of Waiting for whose answers nobody will wait until they
// are likely to arrive, if the server has answered too slowly before. They were not sent, so they have
// certainly done nothing. While none is in flight, the next call is sent all the same: only its answer
// shows that the server is quick again.
func (w *writer[C]) dropLateLocked(now time.Time) {
	q := w.p.peer
	if w.p.congestion.window == 0 {
		return
	}
	at := now
	if w.p.flight.n > 0 {
		at = now.Add(w.p.congestion.last * 5 / 4)
	}
	for c := q.Waiting.Front(); c != nil && q.owner.IsLate(c, at); c = q.Waiting.Front() {
		late, _ := q.Waiting.Pop()
		q.owner.UnsentLocked(late)
		w.late = append(w.late, late)
	}
}

// write sends. Errors are ignored: missing answers show them.
func (w *writer[C]) write(out []byte) {
	if _, err := w.p.Conn.Write(out); err != nil {
		w.p.Abandon(err)
	}
}

// sendsAtOnceLocked reports whether the goroutine that enqueues a call may send it: the
// connection can be written without blocking, the server is known to be there, and
// nothing must be sent before. Nobody may be sending.
func (w *writer[C]) sendsAtOnceLocked() bool {
	p := w.p
	return p.Raw != nil && p.outdated == nil && p.freshLocked() && p.again.n == 0 && len(w.rest) == 0
}

// offer sends without blocking, and reports whether something is left to be sent.
func (w *writer[C]) offer(out []byte) (left bool) {
	if len(out) == 0 {
		return false
	}
	n, err := w.p.Raw.WriteNow(out)
	if err != nil {
		w.p.Abandon(err)
		return false
	}
	w.rest = out[n:]
	return n < len(out)
}

// proven reports whether the connection works. If it was idle, it sends a call first that
// does nothing.
func (w *writer[C]) proven() bool {
	p, q := w.p, w.p.peer
	q.Mu.Lock()
	sure := p.broken != nil || p.doubted || p.again.n > 0 || p.freshLocked()
	if sure {
		defer q.Mu.Unlock()
		return p.broken == nil
	}
	out, answered := p.handler.ProbeLocked(time.Now())
	p.inline.resumeLocked()
	q.Mu.Unlock()
	w.write(out)
	return answered()
}
