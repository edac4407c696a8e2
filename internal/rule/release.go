package rule

import (
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// End is a request to end the owner's lease.
type End struct {
	Owner string
	// Attempt is that of store.Lease and Undo that of store.ReleaseRequest: of
	// several attempts of one owner, a release leaves alone the grant of another one.
	// An empty Attempt means that the owner makes one attempt only.
	Attempt string
	Undo    bool
	// Tombstone, if positive, is how long the attempt is refused if it has no lease. A
	// client uses this to take back a request whose outcome it does not know and
	// that may yet arrive.
	Tombstone time.Duration
}

// Release ends the owner's lease. If it was entered several times, Release counts
// one down, and Answer.Count is what remains.
//
// An owner whose lease was broken is refused from then on until the lease would have
// expired. An owner without a lease is NotHeld. It loses its place in the queue, as nobody
// waits there any more and the lock would be handed to it for nothing. An attempt
// whose release leaves the owner's lease alone is NotHeld, too.
func Release(r Record, e End, now clock.Instant) (Record, Answer) {
	r = Expire(r, now)
	i := r.hold(e.Owner)
	if i < 0 || r.Holds[i].isOfAnother(e) {
		r.Queue = without(r.Queue, r.place(e.Owner))
		if e.Tombstone > 0 {
			r = r.bury(attemptOf(e.Owner, e.Attempt), e.Tombstone, now)
		}
		return r, Answer{Verdict: NotHeld}
	}
	h := r.Holds[i]
	h.Count--
	if h.Count > 0 {
		r.Holds = replaced(r.Holds, i, h)
		return r, Answer{Verdict: Done, Token: h.Token, Count: h.Count, ExpiresIn: h.Expiry.Sub(now)}
	}
	r.Holds = without(r.Holds, i)
	if h.Broken {
		r = r.bury(attemptOf(h.Owner, h.Made), h.Expiry.Sub(now), now)
	}
	return r, Answer{Verdict: Done, Token: h.Token}
}

// isOfAnother reports whether e must leave h, a lease of its owner, alone: another
// attempt made it or, to undo an attempt, also if another one has joined it.
func (h Hold) isOfAnother(e End) bool {
	if e.Attempt == "" || h.Made == e.Attempt {
		return false
	}
	return h.Made != "" || e.Undo
}

// attemptOf is what a tombstone refuses: an owner, or one of its attempts. Neither
// contains a space.
func attemptOf(owner, attempt string) string {
	if attempt == "" {
		return owner
	}
	return owner + " " + attempt
}

// bury adds a tombstone for owner.
func (r Record) bury(owner string, tombstone time.Duration, now clock.Instant) Record {
	t := Tombstone{Owner: owner, Expiry: after(now, tombstone)}
	i := slices.IndexFunc(r.Tombstones, func(t Tombstone) bool { return t.Owner == owner })
	if i < 0 {
		r.Tombstones = with(r.Tombstones, t)
		return r
	}
	t.Expiry = max(t.Expiry, r.Tombstones[i].Expiry)
	r.Tombstones = replaced(r.Tombstones, i, t)
	return r
}

func (r Record) buried(owner string) bool {
	return slices.ContainsFunc(r.Tombstones, func(t Tombstone) bool { return t.Owner == owner })
}
