package leasehold

import (
	"context"
	"errors"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
)

const (
	// A waiter that gives up reports the holder it knows of if that is recent. What it
	// knows may be older, since a store need not say anything while nobody asks.
	recent = time.Second
	// refreshTimeout bounds how long the store is asked otherwise.
	refreshTimeout = time.Second
)

// refresher asks the store about the lock that a queue waits for. All waiters that give
// up at about the same time share one question. The queues' mutex guards it.
type refresher struct{ last *refresh }

// refresh is one question to the store.
type refresh struct {
	at    clock.Instant // when it began
	done  chan struct{} // closed when the fields below are set
	state store.State
	err   error
}

// departure is what a waiter knew when it left its queue.
type departure struct {
	why   error         // why it was not granted the lock
	at    clock.Instant // when that was known
	rank  uint64        // of the queue's place in the store's queue; 0: it had none
	ahead int           // waiters of the queue before it
}

// holder returns why the waiter with the departure s was not granted the lock of that name.
// It asks the store once, unless the reason in s is recent.
func (r *refresher) holder(ctx context.Context, c *queues, name string, ttl time.Duration, s departure) error {
	var busy *BusyError
	if !errors.As(s.why, &busy) {
		return s.why
	}
	now := c.lockQueues()
	if now.Sub(s.at) < recent {
		c.mutex.Unlock()
		return s.why
	}
	l, mine := r.last, false
	if l == nil || now.Sub(l.at) >= recent {
		l, mine = &refresh{at: now, done: make(chan struct{})}, true
		r.last = l
	}
	c.mutex.Unlock()
	if mine {
		l.ask(ctx, &c.core, name, ttl)
	}
	<-l.done
	if l.err != nil || s.rank != 0 && store.Rank(l.state.Holder.Owner) == s.rank { // handed to us, and about to be released
		return s.why
	}
	e := updated(busy, l.state)
	if s.rank != 0 {
		e.Position = 1 + before(l.state.Queue, s.rank) + s.ahead
	}
	return e
}

// ask fills in l. Whatever the store does, others do not wait for l for ever.
func (l *refresh) ask(ctx context.Context, c *core, name string, ttl time.Duration) {
	defer close(l.done)
	l.err = errors.New("the store panicked")
	l.state, l.err = c.inspect(ctx, name, ttl)
}

// before returns how many places of queue come before one of that rank, which may
// be among them.
func before(queue []store.Place, rank uint64) (n int) {
	for i, p := range queue {
		switch is := store.Rank(p.Holder.Owner); {
		case is == rank:
			return i
		case is < rank:
			n++
		}
	}
	return n
}

// refreshHolder is refresher.holder for a goroutine that polls, and knew why at that
// time.
func (c *core) refreshHolder(ctx context.Context, name string, ttl time.Duration, why error, at clock.Instant) error {
	var busy *BusyError
	if !errors.As(why, &busy) || c.clock.Now().Sub(at) < recent {
		return why
	}
	state, err := c.inspect(ctx, name, ttl)
	if err != nil {
		return why
	}
	return updated(busy, state)
}

// inspect asks the store about a lock although ctx has ended.
func (c *core) inspect(ctx context.Context, name string, ttl time.Duration) (store.State, error) {
	ctx, cancel := clock.Bound(ctx, min(refreshTimeout, validity.RenewAfter(ttl)))
	defer cancel()
	return c.store.Inspect(ctx, name)
}

// updated returns busy with what st says of the holder. If the lock is free, st does
// not say who held it last.
func updated(busy *BusyError, st store.State) *BusyError {
	e := *busy
	e.Nodes, e.Undecided, e.ExpiresIn = st.Nodes, false, 0
	if now := st.InUse(); now != nil {
		e.Holder, e.Undecided, e.ExpiresIn = now.Holder, now.Undecided, now.ExpiresIn
	}
	return &e
}
