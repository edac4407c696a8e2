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

// begin notes a grant of a token, and of spare more for passes.
func (c *cohort) begin(token fence.Token, spare int, now clock.Instant) {
	*c = cohort{token: token, next: token + 1, spare: spare, mark: now}
}

// bounded reports whether no pass may follow before the store is asked: for tokens, or
// whether anybody waits elsewhere.
func (c *cohort) bounded(by *Cohort, now clock.Instant) bool {
	return c.spare == 0 || passesBounded && (c.passes >= by.MostPasses || now.Sub(c.mark) >= by.For)
}

// last returns the last token that is reserved.
func (c *cohort) last() fence.Token { return c.next + fence.Token(c.spare) - 1 }

// add notes that the store has reserved count tokens. It returns false if they are of no
// use, since the holder has a later one.
func (c *cohort) add(token fence.Token, count int) bool {
	switch {
	case token <= c.token:
		return false
	case token == c.last()+1:
		c.spare += count
	default:
		c.next, c.spare = token, count
	}
	return true
}

// pass returns the token of the next holder.
func (c *cohort) pass() fence.Token {
	c.passes++
	c.spare--
	if passesDraw {
		c.token = c.next
	}
	c.next++
	return c.token
}
