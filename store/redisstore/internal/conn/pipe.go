package conn

import (
	"context"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Pipe is one connection of a Peer. Calls are pipelined: they are written without waiting
// for earlier answers. A goroutine reads the answers, which arrive in the same order.
type Pipe[C any] struct {
	Connection
	At clock.Instant // when the data that is being read arrived; of the reader

	peer    *Peer[C]
	handler Handler[C]
	writer  writer[C]
	reader  reader[C]

	// Guarded by the Peer's Mu. Once the connection is broken, the reader owns them.
	flight     Queue[sent[C]] // sent and not answered
	again      Queue[C]       // to be sent once more
	paused     bool           // what is enqueued waits for answers
	congestion congestion
	patience   time.Duration // how long the oldest call in flight may take
	lookAt     time.Time     // when the watch timer calls look; zero: it is stopped
	used       time.Time     // when the server last answered all that was sent
	answered   time.Time     // when the last answer came
	calm       bool          // nothing was sent for long before what is in flight
	outdated   error         // why the connection is replaced once all answers are in; nil: it is not
	broken     error         // why the connection cannot be used any more; nil: it can
	doubted    bool          // later answers are ignored; see Doubt
	inline     inlineReader[C]

	watch  *time.Timer
	forget func() bool // detaches the connection from the Peer's context
}

// sent is a call in flight.
type sent[C any] struct {
	call    C
	at      time.Time
	timeout time.Duration
}

// Attach makes w a connection of p to the server at host.
func (p *Peer[C]) Attach(w *Pipe[C], host string, conn net.Conn, h Handler[C]) {
	w.peer, w.handler, w.writer.p, w.reader.p, w.inline.p = p, h, w, w, w
	w.Connection.Attach(host, conn, &w.reader)
	w.forget = context.AfterFunc(p.ctx, func() { conn.Close() })
}

// startLocked begins to use the connection. The exchange of the greeting has used the same
// replies.
func (p *Pipe[C]) startLocked(now time.Time) {
	p.used = now
	p.watch = time.AfterFunc(time.Hour, p.look)
	p.lookAgainLocked(now, p.handler.DueLocked(now, false))
	p.inline.begin()
	p.peer.Go(p.reader.run)
}

// LaunchLocked counts a call as sent, which may take that long to be answered. What is
// sent for it must be appended while Mu is held: once in flight, the call may be answered,
// and its memory reused.
func (p *Pipe[C]) LaunchLocked(c C, timeout time.Duration, now time.Time) {
	if p.calm = p.flight.n == 0 && now.Sub(p.used) > maxIdle; p.flight.n == 0 {
		p.patience = 0
	}
	p.patience = max(p.patience, timeout)
	p.flight.Push(sent[C]{c, now, timeout})
	p.inline.most = max(p.inline.most, p.flight.n)
	if late := now.Add(p.patience); p.lookAt.IsZero() || late.Before(p.lookAt) {
		p.lookAt = late
		p.watch.Reset(p.patience)
	}
}

// PopLocked removes the oldest call in flight; ok is false if there is none.
func (p *Pipe[C]) PopLocked() (c C, ok bool) {
	s, ok := p.flight.Pop()
	return s.call, ok
}

// AgainLocked has a call that was answered sent once more, as soon as nothing is in
// flight.
func (p *Pipe[C]) AgainLocked(c C) { p.again.Push(c) }

// holdsBackLocked reports whether what is enqueued is to wait for answers.
func (p *Pipe[C]) holdsBackLocked() bool {
	return p.congestion.holdsBack(p.flight.n, p.peer.Waiting.n)
}

// look ends the connection if the oldest call in flight has waited too long, and no answer has come
// for as long. While answers arrive, even late ones, the server is there: what it has yet to
// answer would only have to be sent again. Then look runs only now and then.
func (p *Pipe[C]) look() {
	q := p.peer
	q.Mu.Lock()
	late, now := false, time.Now()
	if p.broken != nil || p.doubted {
		q.Mu.Unlock()
		return // no caller waits for the calls in flight
	}
	var again time.Time
	oldest := p.flight.Front()
	if oldest != nil {
		at := oldest.at.Add(p.patience)
		if last := p.answered.Add(p.patience); last.After(at) {
			at = last
		}
		if late = !now.Before(at); !late {
			again = at
		}
	}
	if !late {
		p.handler.UpkeepLocked(now)
		if due := p.handler.DueLocked(now, oldest == nil); again.IsZero() || !due.IsZero() && due.Before(again) {
			again = due
		}
		p.lookAgainLocked(now, again)
	}
	q.Mu.Unlock()
	if late {
		q.owner.Rest(AfterSilence)
		p.Abandon(ErrSilent)
	}
}

// lookAgainLocked sets the watch timer to the given time. If it is zero, look is needed
// only after something is sent.
func (p *Pipe[C]) lookAgainLocked(now, at time.Time) {
	if p.lookAt = at; at.IsZero() {
		p.watch.Stop()
	} else {
		p.watch.Reset(at.Sub(now))
	}
}

// freshLocked reports whether the server has just answered, or is about to.
func (p *Pipe[C]) freshLocked() bool { return p.flight.n > 0 || time.Since(p.used) < maxIdle }

// UsedLocked returns when the server last answered.
func (p *Pipe[C]) UsedLocked() time.Time { return p.used }

// Session returns the Handler; nil if p is nil.
func (p *Pipe[C]) Session() Handler[C] {
	if p == nil {
		return nil
	}
	return p.handler
}

// Abandon closes the connection because of err. Its reader answers what was in flight.
func (p *Pipe[C]) Abandon(err error) {
	p.peer.Mu.Lock()
	p.giveUpLocked(err)
	p.peer.Mu.Unlock()
	p.Conn.Close()
}

// Replace abandons the connection as soon as everything that was sent over it is answered,
// and sends nothing more until then. So no caller loses an answer.
func (p *Pipe[C]) Replace(why error) {
	p.peer.Mu.Lock()
	p.outdated = why
	drained := p.drainedLocked()
	p.peer.Mu.Unlock()
	if drained {
		p.Abandon(why)
	}
}

// drainedLocked reports whether a connection that is to be replaced has no calls in
// flight any more.
func (p *Pipe[C]) drainedLocked() bool {
	return p.outdated != nil && p.flight.n == 0 && p.again.n == 0
}

// giveUpLocked marks the connection as unusable.
func (p *Pipe[C]) giveUpLocked(err error) {
	if p.broken != nil {
		return
	}
	q := p.peer
	p.broken, q.pipe = err, nil
	p.inline.resumeLocked()
	switch {
	case q.closed != nil:
		p.broken = q.closed
	case err == ErrSilent: // the server is down for other callers at once
		q.setDownLocked(err, p.patience, 0)
	}
	p.handler.LostLocked()
	if q.Waiting.n > 0 {
		q.Wake()
	}
}

// Unsent removes a call of a broken connection that the server has answered without
// executing it; ok is false if there is none. It is for Handler.Broken.
func (p *Pipe[C]) Unsent() (c C, ok bool) { return p.again.Pop() }

// Unanswered removes a call that was in flight when the connection broke, and may have been
// executed; ok is false if there is none. It is for Handler.Broken.
func (p *Pipe[C]) Unanswered() (c C, ok bool) { return p.PopLocked() }

// AllLocked iterates over the calls that were sent and not answered, or have to be sent once
// more. Handler.LostLocked uses it.
func (p *Pipe[C]) AllLocked(yield func(*C) bool) {
	for c := range p.again.All {
		if !yield(c) {
			return
		}
	}
	for s := range p.flight.All {
		if !yield(&s.call) {
			return
		}
	}
}

// InFlightLocked returns how many calls are sent and not answered.
func (p *Pipe[C]) InFlightLocked() int { return p.flight.n }

// Doubt gives up the calls in flight if the oldest was sent longer than grace ago, and
// passes them to Handler.Doubted. Later answers over the connection are ignored. If none is
// that old, Doubt returns how long that can last: at most the time limit. The Pipe may be
// nil.
func (p *Pipe[C]) Doubt(now time.Time, grace, limit time.Duration) (left time.Duration) {
	if p == nil {
		return limit
	}
	q := p.peer
	q.Mu.Lock()
	if p.doubted || p.broken != nil || p.flight.n == 0 {
		q.Mu.Unlock()
		return limit
	}
	if left := grace - now.Sub(p.flight.Front().at); left > 0 {
		q.Mu.Unlock()
		return left
	}
	p.doubted = true
	p.watch.Stop()
	var late []C
	for c, ok := p.PopLocked(); ok; c, ok = p.PopLocked() {
		late = append(late, c)
	}
	p.inline.resumeLocked()
	q.Wake()
	q.Mu.Unlock()
	p.handler.Doubted(late)
	return limit
}

// DoubtedLocked returns the number of calls in flight that nobody waits for after Doubt,
// and whether something has yet to be sent.
func (p *Pipe[C]) DoubtedLocked() (flight int, unsent bool) {
	if !p.doubted {
		return 0, false
	}
	return p.flight.n, p.peer.sender.sending || p.peer.Waiting.n > 0 || p.again.n > 0 || len(p.writer.rest) > 0
}
