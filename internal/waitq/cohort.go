package waitq

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Cohort bounds how a lease is passed on within the queue. The zero Cohort allows no
// pass.
type Cohort struct {
	// MostPasses is the largest number of passes in a row.
	MostPasses int
	// For is how long after the grant a pass may begin.
	For time.Duration
	// MostTokens is how many tokens are reserved for passes at a time.
	MostTokens int
}

// Passes reports whether a lease is passed on.
func (c Cohort) Passes() bool { return c.MostTokens > 0 }

// Tokens returns how many tokens to reserve for passes when so many wait: no more than
// may well be used. Tokens must not outrun the clock, from which a node that has lost
// its counter goes on.
func (c Cohort) Tokens(waiters int) int { return min(8*(waiters+1), c.MostTokens) }

// cohort is the lease that is passed on.
type cohort struct {
	token  fence.Token   // of the present holder
	next   fence.Token   // to be used next,
	spare  int           // of so many
	passes int           // since mark,
	mark   clock.Instant // from when the bounds count
}

// unlock decides what becomes of the lease when its last holder has left it.
func (q *Queue[T]) unlock(passable bool, now clock.Instant, out []Action[T]) []Action[T] {
	q.phase = Ending
	c, w := &q.cohort, q.Foremost()
	switch {
	case w == nil || !passable:
		return q.release(out)
	case c.spare == 0 || q.bounded(now):
		// The tokens that are left are used as well.
		return append(out, Action[T]{Kind: ReserveTokens, Token: c.last(), Count: max(1, q.bounds.MostTokens-c.spare)})
	}
	return q.pass(w, out)
}

// bounded reports whether a bound is reached: the store is asked then whether anybody
// waits elsewhere.
func (q *Queue[T]) bounded(now clock.Instant) bool {
	return passesBounded && (q.cohort.passes >= q.bounds.MostPasses || now.Sub(q.cohort.mark) >= q.bounds.For)
}

// last is the last token that is reserved.
func (c *cohort) last() fence.Token { return c.next + fence.Token(c.spare) - 1 }

// pass makes w the holder.
func (q *Queue[T]) pass(w *Waiter[T], out []Action[T]) []Action[T] {
	q.phase = Holding
	q.remove(w)
	c := &q.cohort
	c.passes++
	c.spare--
	if passesDraw {
		c.token = c.next
	}
	c.next++
	return append(out, Action[T]{Kind: Pass, Waiter: w, Token: c.token})
}

// release ends the lease. Waiters ask the store only when it was released. If there are
// none, the goroutines that come meanwhile need not wait for that.
func (q *Queue[T]) release(out []Action[T]) []Action[T] {
	if q.first == nil {
		q.phase = Idle
	}
	return append(out, Action[T]{Kind: Release})
}

// tokensReserved goes on with the tokens that the store has reserved. While nobody waits
// elsewhere, the bounds start anew.
func (q *Queue[T]) tokensReserved(e Event[T], now clock.Instant, out []Action[T]) []Action[T] {
	c := &q.cohort
	if e.Token <= c.token {
		return append(out, Action[T]{Kind: Release})
	}
	if e.Token == c.last()+1 {
		c.spare += e.Count
	} else {
		c.next, c.spare = e.Token, e.Count
	}
	if !e.Waiting {
		c.passes, c.mark = 0, now
	}
	w := q.Foremost()
	if w == nil || !e.Passable || c.spare == 0 || q.bounded(now) {
		return append(out, Action[T]{Kind: Release})
	}
	return q.pass(w, out)
}
