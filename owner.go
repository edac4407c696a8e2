package leasehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// ReleaseOwner ends the lease that owner has of the lock called name, in whatever
// process it was acquired: Lease.Owner there says what owner is. It is for leases
// that outlive the process that acquired them, with LockOptions.NoRenew. A holder
// that still renews the lease (Holder.Unrenewed is false) is notified of the loss at its next
// renewal only, when others may have the lock: Break tells it first.
//
// ReleaseOwner blocks for two answers of the store. The error matches ErrLost if
// owner no longer has a lease, as in a second call. While some of several servers do not
// answer, it may be undecided whether the lease is held (store.State.Undecided);
// ReleaseOwner ends it all the same. After any other error the lease
// may or may not remain, and calling again is safe. Safe for concurrent use.
func (c *Client) ReleaseOwner(ctx context.Context, name, owner string) error {
	mustHave(ctx)
	if err := store.CheckOwner(owner); err != nil {
		return err
	}
	state, err := c.store.Inspect(ctx, name)
	if err != nil {
		return err
	}
	gone := &LostError{Name: name, Cause: LostDenied, Reason: fmt.Sprintf("owner %s no longer had it when it was released", owner)}
	if b := state.Broken; b != nil && b.Owner == owner {
		gone.Reason, gone.Broken = b.String(), b
	}
	leases := state.Leases()
	i := slices.IndexFunc(leases, func(h store.Holding) bool { return h.Holder.Owner == owner })
	if i < 0 {
		return gone
	}
	err = c.store.Release(ctx, store.ReleaseRequest{Lease: leaseOf(state, leases[i], c.store.Caps()), Renewed: true})
	if errors.Is(err, store.ErrNotHeld) {
		return gone
	}
	return err
}

// leaseOf returns the lease that h is, as another process has to name it.
func leaseOf(state store.State, h store.Holding, caps store.Caps) store.Lease {
	ttl := max(h.ExpiresIn, time.Second, caps.MinTTL) // for how long late requests of the holder are refused
	if caps.MaxTTL > 0 {
		ttl = min(ttl, caps.MaxTTL)
	}
	kind := h.Kind
	if kind.IsMutex() && len(state.Holders) > 0 { // of a semaphore that was resized to one permit
		kind = store.Semaphore(max(h.Weight, 2))
	}
	l := store.Lease{Name: state.Name, Owner: h.Holder.Owner, Kind: kind, Weight: h.Weight, TTL: ttl}
	described := h.Holder
	described.Owner = ""
	if described != (Holder{}) {
		l.Meta = described.Encode()
	}
	return l
}
