package waits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/holds"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/internal/waitq"
	"github.com/leasehold-dev/leasehold/store"
)

// CanWait reports whether waiting for the lock can help: because its holder will be
// gone (busy is then set), or because nodes may come back.
func CanWait(err error) (busy *store.BusyError, retry bool) {
	if errors.As(err, &busy) {
		return busy, true
	}
	var quorum *store.QuorumError
	if errors.As(err, &quorum) {
		return nil, quorum.Transient()
	}
	return nil, errors.Is(err, holds.ErrLost) // granted, but too late to be of use
}

// opens reports whether the lock is refused because nodes are in quarantine,
// which has an end.
func opens(err error) bool {
	var quorum *store.QuorumError
	if !errors.As(err, &quorum) {
		return false
	}
	_, ok := quorum.OpensIn()
	return ok
}

// classOf is what a queue has to know of an error for which CanWait says that waiting
// may help.
func classOf(err error) waitq.Reason {
	if busy, _ := CanWait(err); busy != nil {
		return waitq.Busy
	}
	if opens(err) {
		return waitq.Closed
	}
	return waitq.NoAnswer
}

// cause is why a lock cannot be granted yet, reduced to what makes an event of its
// own. How long something will last is not part of it, nor is which
// nodes have said so, since that differs with each answer.
type cause struct {
	kind     causeKind
	holder   string // its owner, where somebody holds the lock
	position int    // of the waiter in the queue
}

type causeKind uint8

const (
	noCause causeKind = iota // nothing was told yet
	isHeld
	inQuarantine
	noQuorum
	cameTooLate // a grant whose validity was over
)

// causeOf classifies an error for which CanWait says that waiting may help.
func causeOf(err error) cause {
	busy, _ := CanWait(err)
	var quorum *store.QuorumError
	switch {
	case busy != nil:
		return cause{isHeld, busy.Holder.Owner, busy.Position}
	case opens(err):
		return cause{kind: inQuarantine}
	case errors.As(err, &quorum):
		return cause{kind: noQuorum}
	}
	return cause{kind: cameTooLate}
}

// GaveUp is the error of a wait that its context ended. It matches the
// context's error and whatever the last answer matched.
func GaveUp(ctx context.Context, last error) error {
	ended := ctx.Err()
	if cause := context.Cause(ctx); cause != ended {
		ended = Both(ended, cause)
	}
	var busy *store.BusyError
	if errors.As(last, &busy) {
		e := *busy
		e.Err = Both(ended, busy.Err)
		return &e
	}
	switch {
	case last != nil && errors.Is(last, ended):
		return last
	}
	return Both(ended, last)
}

// waitOver returns the error with which a wait ends after an attempt that failed with
// err, or nil if waiting may help.
func waitOver(ctx context.Context, err error) error {
	switch _, retry := CanWait(err); {
	case ctx.Err() != nil && (retry || errors.Is(err, ctx.Err())):
		return GaveUp(ctx, err)
	case ctx.Err() != nil || !retry:
		return err
	}
	return nil
}

// Both is errors.Join in one line.
func Both(a, b error) error {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return fmt.Errorf("%w: %w", a, b)
}

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

// holder returns why the waiter of q that withdrew as s was not granted the lock.
// It asks the store once, unless the reason in s is recent.
func (r *refresher) holder(ctx context.Context, q *queue, s *withdrawal) error {
	c := q.c
	var busy *store.BusyError
	if !errors.As(s.why, &busy) {
		return s.why
	}
	now := c.lock()
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
		l.ask(ctx, c, q.Name, q.Life.TTL)
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
func (l *refresh) ask(ctx context.Context, c *Queues, name string, ttl time.Duration) {
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
func (c *Queues) refreshHolder(ctx context.Context, name string, ttl time.Duration, why error, at clock.Instant) error {
	var busy *store.BusyError
	if !errors.As(why, &busy) || c.holds.Clock.Now().Sub(at) < recent {
		return why
	}
	state, err := c.inspect(ctx, name, ttl)
	if err != nil {
		return why
	}
	return updated(busy, state)
}

// inspect asks the store about a lock although ctx has ended.
func (c *Queues) inspect(ctx context.Context, name string, ttl time.Duration) (store.State, error) {
	ctx, cancel := clock.Bound(ctx, min(refreshTimeout, validity.RenewAfter(ttl)))
	defer cancel()
	return c.holds.Store.Inspect(ctx, name)
}

// updated returns busy with what st says of the holder. If the lock is free, st does
// not say who held it last.
func updated(busy *store.BusyError, st store.State) *store.BusyError {
	e := *busy
	e.Nodes, e.Undecided, e.ExpiresIn = st.Nodes, false, 0
	if now := st.InUse(); now != nil {
		e.Holder, e.Undecided, e.ExpiresIn = now.Holder, now.Undecided, now.ExpiresIn
	}
	return &e
}
