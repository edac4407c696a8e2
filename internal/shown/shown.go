// Package shown says what a record of a lock looks like to Inspect and List, for the
// stores that keep records of package rule.
package shown

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
)

// State returns what record r says about the lock called name, without its queue.
func State(name string, r rule.Record, now clock.Instant) store.State {
	r = rule.Expire(r, now)
	if len(r.Holds) == 0 {
		return store.State{Name: name}
	}
	h := r.Holds[0]
	st := store.State{
		Name:      name,
		Held:      true,
		Holder:    holder(h),
		Token:     token(h),
		ExpiresIn: h.Expiry.Sub(now),
		HeldFor:   h.HeldFor(now),
	}
	if r.Spec == rule.Mutex && len(r.Holds) == 1 {
		return st
	}
	st.Kind = store.Kind(r.Spec)
	for _, h := range r.Holds {
		st.Holders = append(st.Holders, store.Holding{
			Holder: holder(h), Token: token(h), ExpiresIn: h.Expiry.Sub(now), HeldFor: h.HeldFor(now), Weight: h.Weight, Slot: h.Slot,
		})
	}
	return st
}

// holder describes the holder of a lease.
func holder(h rule.Hold) store.Holder {
	d := Holder(h.Owner, h.Meta)
	d.Broken = h.Broken
	return d
}

// token returns the token of a lease. Another kind of client has none.
func token(h rule.Hold) fence.Token {
	if h.Meta == Foreign {
		return 0
	}
	return h.Token
}

// Foreign is the Meta of a lease of another kind of client.
const Foreign = "\x00foreign"

// Holder describes the owner of a lease or a place.
func Holder(owner, meta string) store.Holder {
	d := store.DecodeHolder(owner, meta)
	d.Foreign = meta == Foreign
	return d
}

// Broken returns the note about the lease that was broken last, or nil.
func Broken(r rule.Record, now clock.Instant) *store.Broken {
	r = rule.Expire(r, now)
	if r.Broken == nil {
		return nil
	}
	return store.DecodeBroken(r.Broken.Owner, r.Broken.Token, r.Broken.Note)
}

// Queue returns the waiters of record r, the first store.MaxQueue of them.
func Queue(r rule.Record, now clock.Instant) (queue []store.Place) {
	r = rule.Expire(r, now)
	for _, p := range r.Queue[:min(len(r.Queue), store.MaxQueue)] {
		queue = append(queue, store.Place{Holder: store.DecodeHolder(p.Owner, p.Meta), ExpiresIn: max(0, p.Expiry.Sub(now))})
	}
	return queue
}
