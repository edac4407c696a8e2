package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Break is a request of an operator to end the lease that Owner has with Token.
type Break struct {
	Owner string
	Token fence.Token
	// Now ends the lease in this step, and refuses requests of its owner until it would
	// have expired. Otherwise it cannot be renewed any more, and ends with its release
	// or its expiry, so that its owner learns of the loss before another owner can hold
	// the lock.
	Now bool
	// Note says who broke the lease and why. The record keeps it for the time Keep.
	Note string
	Keep time.Duration
}

// BreakLease breaks the lease of b.Owner with b.Token. Answer.Count is 0 if the lease
// is over, and ExpiresIn says for how long it can still last otherwise. A repeated
// request is answered in the same way, and keeps the first note; with Now it ends a
// lease that was broken without. An owner that has no lease with that token is
// NotHeld.
func BreakLease(r Record, b Break, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(b.Owner)
	if i < 0 || r.Holds[i].Token != b.Token {
		if r.Broken != nil && r.Broken.Owner == b.Owner && r.Broken.Token == b.Token {
			return r, Answer{Verdict: Done, Token: b.Token}
		}
		return r, Answer{Verdict: NotHeld}
	}
	return r.breakHold(i, b, now)
}

// Part is what one of several nodes has of a lease that is to be broken, as it was shown.
// A part can have a token of its own, since a node that lost the lease draws another one
// when the lease is given back to it.
type Part struct {
	// Token is that of the part. Zero means that the node was shown without the lease.
	Token fence.Token
	// Made is the attempt that made the grant, as in Hold.
	Made string
	// Tombstone is how long the node refuses late requests of the owner, such as one that gives
	// the lease back to it. The part may end before those of other nodes.
	Tombstone time.Duration
}

// BreakPart is BreakLease on one of several nodes. b.Token is that of the whole lease, and
// is only noted. The node leaves a tombstone in any case. If it does not have the
// lease, it removes the owner's place and answers NotHeld. If the owner has another lease here than the one that was
// shown, nothing changes, and the answer is a Mismatch.
func BreakPart(r Record, b Break, p Part, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(b.Owner)
	if i < 0 {
		r.Queue = without(r.Queue, r.place(b.Owner))
		return r.bury(attemptOf(b.Owner, p.Made), p.Tombstone, now), Answer{Verdict: NotHeld}
	}
	if h := r.Holds[i]; p.Token != 0 && h.Token != p.Token || p.Token == 0 && h.Made != p.Made {
		return r, Answer{Verdict: Mismatch, Blocker: h.blocker(), ExpiresIn: h.Expiry.Sub(now)}
	}
	made := r.Holds[i].Made
	r, ans := r.breakHold(i, b, now)
	return r.bury(attemptOf(b.Owner, made), p.Tombstone, now), ans
}

// breakHold breaks the i-th lease.
func (r Record) breakHold(i int, b Break, now clock.Instant) (Record, Answer) {
	h := r.Holds[i]
	if !h.Broken {
		r.Broken = &Broken{Owner: b.Owner, Token: b.Token, Note: b.Note, Expiry: after(max(now, h.Expiry), b.Keep)}
	}
	if b.Now {
		r.Holds = without(r.Holds, i)
		r = r.bury(attemptOf(h.Owner, h.Made), h.Expiry.Sub(now), now)
		return r, Answer{Verdict: Done, Token: h.Token}
	}
	h.Broken = true
	r.Holds = replaced(r.Holds, i, h)
	return r, Answer{Verdict: Done, Token: h.Token, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}
