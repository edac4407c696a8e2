package rule

import (
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Downgrade makes the writer of a read-write lock a reader: nobody else writes in
// between. The reader has a new token, which readers that join it share, so that a
// resource refuses what the owner sent as the writer. Its slot stays, and it is renewed
// for ttl.
//
// An owner that reads already is Granted what it has, so the step can be repeated. An
// owner without a lease, or whose lease was broken, is NotHeld, and one of another kind of
// lock a Mismatch. floor is like Ask.Floor.
func Downgrade(r Record, owner string, ttl time.Duration, floor fence.Token, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(owner)
	switch {
	case i < 0 || r.Holds[i].Broken:
		return r, Answer{Verdict: NotHeld}
	case !r.Spec.Shared:
		return r, Answer{Verdict: Mismatch, Spec: r.Spec}
	}
	h := r.Holds[i]
	again := h.Weight < r.Spec.Limit
	if !again {
		h.Weight, h.Count = 1, 1
		alone := r
		alone.Holds = nil // a writer is alone; its token is not one to share
		alone = alone.draw(h.Weight, floor)
		r.Token, h.Token = alone.Token, alone.Token
	}
	h.Expiry = max(h.Expiry, after(now, ttl))
	r.Holds = replaced(r.Holds, i, h)
	return r, Answer{Verdict: Granted, Again: again, Token: h.Token, Slot: h.Slot, Slots: h.Slots, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
}

// Resize changes the number of permits of a semaphore that is in use. Leases stay as
// they are, also if they no longer fit: nobody is admitted until they do. Waiters lose
// their places, since they asked for a semaphore with the earlier number.
//
// A lock that is in use as neither from nor to is a Mismatch. A lock that is not in use, or
// is of that size already, stays as it is. Over several nodes it cannot be done: no node
// knows how many permits are held, and one without a lease would go on with the number
// before.
func Resize(r Record, from, to Spec, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	switch {
	case r.unused() || r.Spec == to:
		return r, Answer{Verdict: Done}
	case r.Spec != from:
		return r, r.mismatch("", now)
	}
	if len(r.Holds) > 0 {
		r.Was = max(r.Was, r.Spec.Limit)
	}
	r.Spec, r.Queue = to, nil
	return r, Answer{Verdict: Done}
}
