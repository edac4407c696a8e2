package conn

import (
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// reader reads one connection, and hands on replies and pushes. The connection's goroutine
// runs it, or a caller as inline reader.
type reader[C any] struct {
	p     *Pipe[C]
	eager eager
}

// receive reads from the connection.
func (r *reader[C]) receive(b []byte) (int, error) {
	p := r.p
	if p.Raw == nil {
		return p.Conn.Read(b)
	}
	if p.peer.owner.Inline() > 0 { // the client has one server
		p.peer.Mu.Lock()
		looks := p.flight.n > 0 && r.eager.looks(p.congestion.quickest)
		p.peer.Mu.Unlock()
		if looks {
			if n, ok, err := r.eager.look(p.Raw, b); ok || err != nil {
				return n, err
			}
		}
	}
	return p.Raw.Read(b)
}

// Read is the source of replies.
func (r *reader[C]) Read(b []byte) (int, error) {
	p := r.p
	n, err := r.receive(b)
	for err != nil && p.inline.within && IsTimeout(err) {
		p.Conn.SetReadDeadline(time.Time{}) // the rest of the answer is about to arrive
		n, err = r.receive(b)
	}
	p.At = p.peer.config.Clock.Now() // one reading of the clock for everything that arrived at once
	return n, err
}

// run is the connection's goroutine.
func (r *reader[C]) run() {
	p := r.p
	for {
		if err := r.next(); err != nil {
			p.Abandon(err)
			p.peer.owner.Rest(AfterBreak)
			r.end()
			return
		}
		p.inline.pause()
	}
}

// next handles one reply or push.
func (r *reader[C]) next() error {
	p := r.p
	v, err := p.In.Next()
	switch {
	case err != nil:
		return err
	case v.Kind == '>':
		return r.push(v)
	}
	return r.reply(v)
}

// push handles a push.
func (r *reader[C]) push(v resp.Value) error {
	p := r.p
	if err := p.handler.Push(v); err != nil {
		return err
	}
	p.peer.Mu.Lock()
	resumes := r.resumesLocked()
	p.peer.Mu.Unlock()
	if resumes {
		r.resume()
	}
	return nil
}

// resumesLocked reports whether to send now what has waited for answers. While more has arrived,
// that is handled first, so that what is sent doesn't depend on which goroutine is faster.
func (r *reader[C]) resumesLocked() bool {
	p := r.p
	return p.paused && p.flight.n <= p.congestion.room()/2 && !p.holdsBackLocked() && !p.In.HasBuffered()
}

func (r *reader[C]) resume() {
	q := r.p.peer
	q.owner.Rest(BeforeWrite)
	q.Mu.Lock()
	defer q.Mu.Unlock()
	q.flushLocked()
}

// reply handles a reply.
func (r *reader[C]) reply(v resp.Value) error {
	p := r.p
	q := p.peer
	q.Mu.Lock()
	if p.broken != nil || p.doubted {
		q.Mu.Unlock()
		return nil // the calls in flight have already failed
	}
	if p.flight.n == 0 {
		q.Mu.Unlock()
		return ErrUnasked
	}
	now := time.Now()
	oldest, inFlight := *p.flight.Front(), p.flight.n
	p.congestion.answered(now.Sub(oldest.at))
	p.congestion.adapt(oldest.at, now, oldest.timeout, inFlight)
	p.answered = now
	if err := p.handler.TakeLocked(v); err != nil {
		p.giveUpLocked(err)
		q.Mu.Unlock()
		return err
	}
	drained, resumes := r.answeredLocked(now), r.resumesLocked()
	q.Mu.Unlock()
	p.handler.Reply(v)
	switch {
	case drained:
		p.Abandon(p.outdated)
	case resumes:
		r.resume()
	}
	return nil
}

// answeredLocked records that calls were answered at now. It reports whether the connection is
// to be replaced.
func (r *reader[C]) answeredLocked(now time.Time) (drained bool) {
	p := r.p
	if p.again.n > 0 && p.flight.n == 0 {
		p.peer.Wake()
	}
	if p.flight.n == 0 {
		p.used = now
		if p.calm { // otherwise the timer runs on: more calls will come
			p.calm = false
			p.lookAgainLocked(p.used, p.handler.DueLocked(p.used, true))
		}
	}
	return p.drainedLocked()
}

// end is called by the reader, last.
func (r *reader[C]) end() {
	p := r.p
	p.forget()
	p.watch.Stop()
	p.inline.idle.Stop()
	p.handler.Broken(p.broken, p.patience)
}
