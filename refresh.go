package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

const (
	// recent is how old what is known of a lock may be for whoever gives up waiting to be
	// told just that. A store may say nothing for long, as nobody has asked it.
	recent = time.Second
	// refreshTimeout is how long the store is looked at otherwise, at most.
	refreshTimeout = time.Second
)

// refresh is one question to the store about the lock that a queue waits for. All who give up at about the same time
// share it.
type refresh struct {
	at    clock.Instant // when it began
	done  chan struct{} // closed when there is what follows
	state store.State
	err   error
}

// departure is where and since when somebody who has just left a queue stood.
type departure struct {
	why   error         // as far as it was known
	at    clock.Instant // at
	rank  uint64        // of the queue's place in the store's line; 0: there was none
	ahead int           // others of the queue, before it
}

// departure is w's, as long as it stands. The renewer's mutex is held.
func (w *waiter) departure(now clock.Instant) departure {
	q := w.q
	s := departure{why: w.why(now), at: q.reasonAt, ahead: w.ahead()}
	if q.h != nil { // which is looked at by this process
		s.at = now
	}
	if !q.since.IsZero() {
		s.rank = uint64(max(0, q.since.UnixMicro()))
	}
	return s
}

// refreshHolder is why the one who stood at s was not granted the lock, as it is now: the store is
// asked once, unless what is known is recent. It is no longer in the store's line.
func (q *queue) refreshHolder(ctx context.Context, s departure) error {
	var busy *BusyError
	if !errors.As(s.why, &busy) {
		return s.why
	}
	rn := &q.c.renewer
	now := rn.lock()
	if now.Sub(s.at) < recent {
		rn.mu.Unlock()
		return s.why
	}
	l, mine := q.refresh, false
	if l == nil || now.Sub(l.at) >= recent {
		l, mine = &refresh{at: now, done: make(chan struct{})}, true
		q.refresh = l
	}
	rn.mu.Unlock()
	if mine {
		l.state, l.err = q.c.inspect(ctx, q.name, q.life.TTL)
		close(l.done)
	}
	<-l.done
	if l.err != nil || s.rank != 0 && store.Rank(l.state.Holder.Owner) == s.rank { // handed to us, and about to be given back
		return s.why
	}
	e := updated(busy, l.state)
	if s.rank != 0 {
		e.Position = 1 + before(l.state.Line, s.rank) + s.ahead
	}
	return e
}

// before is how many of a line come before a place of that rank, which may be in it.
func before(line []store.Place, rank uint64) (n int) {
	for i, p := range line {
		switch is := store.Rank(p.Holder.Owner); {
		case is == rank:
			return i
		case is < rank:
			n++
		}
	}
	return n
}

// refreshHolder is that for somebody who asks again and again, and has heard why at that time.
func (l *Lock) refreshHolder(ctx context.Context, why error, at clock.Instant, ttl time.Duration) error {
	var busy *BusyError
	if !errors.As(why, &busy) || l.c.clock.Now().Sub(at) < recent {
		return why
	}
	state, err := l.c.inspect(ctx, l.name, ttl)
	if err != nil {
		return why
	}
	return updated(busy, state)
}

// inspect looks at a lock when the context of whoever wants to know has ended.
func (c *Client) inspect(ctx context.Context, name string, ttl time.Duration) (store.State, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(refreshTimeout, ttl/3))
	defer cancel()
	return c.store.Inspect(ctx, name)
}

// updated is busy with what a look at the lock has shown. Nothing shows who had it last of
// one that is free.
func updated(busy *BusyError, st store.State) *BusyError {
	e := *busy
	if e.Nodes = st.Nodes; st.Held {
		e.Holder, e.ExpiresIn = st.Holder, st.ExpiresIn
	} else {
		e.ExpiresIn = 0
	}
	return &e
}
