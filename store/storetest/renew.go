package storetest

import (
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// checkRenewExtends: a renewed lease outlasts its first TTL, with the same token.
func checkRenewExtends(t *trial) {
	var l short
	var renewed store.Lease
	var start clock.Instant
	for try := 1; ; try++ {
		l = t.acquireShort(t.first)
		renewed = l.Lease
		renewed.TTL = t.long
		start = t.now()
		err := t.renew(t.first, renewed)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrNotHeld) || !t.overdue(l) || try == 6 {
			t.Fatalf("renew: %v", err)
		}
		t.options.ShortTTL *= 2 // the machine was too busy to renew in time
	}
	t.lasts("after the renewal", renewed, t.long, start)
	if st := t.heldBy(renewed); st.ExpiresIn <= l.TTL && t.long > 3*l.TTL {
		t.Fatalf("after the renewal: expires in %v, still within the first TTL of %v", st.ExpiresIn, l.TTL)
	}
	for over := false; !over; t.pause() {
		over = t.now() >= l.back.Add(2*l.TTL)
		if st := t.heldBy(renewed); st.Token != l.Token {
			t.Fatalf("the renewal changed the token from %v to %v, want it kept", l.Token, st.Token)
		}
		t.refuse(t.other(), t.request(l.Name, t.long))
	}
	t.release(t.first, renewed)
}

// checkRenewNeverShrinks: a renewal that is late or has a shorter TTL takes no
// time from the holder.
func checkRenewNeverShrinks(t *trial) {
	start := t.now()
	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	less := r
	less.TTL = t.options.ShortTTL
	for _, s := range t.handles() {
		if err := t.renew(s, less); err != nil {
			t.Fatalf("renew with a shorter TTL: %v", err)
		}
		t.lasts("renewed with a shorter TTL", r, t.long, start)
	}
}

// checkRenewNeverCreates: Renew does not bring back a lease that is gone. It could exist
// beside that of another holder.
func checkRenewNeverCreates(t *trial) {
	never := t.request(t.name(), t.long)
	t.notHeld("renew of a lock nobody ever had", t.renew(t.first, never))
	t.free(never.Name)

	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	t.release(t.first, r)
	for _, s := range t.handles() {
		t.notHeld("renew after the release", t.renew(s, r))
		t.free(r.Name)
	}

	l := t.acquireShort(t.first)
	t.expires(l.Name)
	late := l.Lease
	late.TTL = t.long
	for _, s := range t.handles() {
		t.notHeld("renew after the expiry", t.renew(s, late))
		t.free(l.Name)
	}
}

// checkRenewByOwnerOnly: an owner cannot renew another owner's lease.
func checkRenewByOwnerOnly(t *trial) {
	r := t.request(t.name(), t.long/2)
	t.acquire(t.first, r)
	for _, s := range t.handles() {
		t.notHeld("renew by another owner", t.renew(s, t.request(r.Name, t.long)))
		t.within("after a renewal by another owner", t.heldBy(r).ExpiresIn, r.TTL)
	}
}

// checkRenewBatch: each lease of a batch has its own result, in order.
func checkRenewBatch(t *trial) {
	const n = 61 // more than a store is likely to renew in one request
	start := t.now()
	var batch []store.Lease
	var want []error // nil: renewed
	add := func(r store.Lease, err error) {
		batch = append(batch, r)
		want = append(want, err)
	}
	for i := range n {
		r := t.request(t.name(), t.long/2)
		switch i % 4 {
		case 0, 3: // held by its owner
			t.acquire(t.first, r)
			r.TTL = t.long
			add(r, nil)
		case 1: // never acquired
			add(r, store.ErrNotHeld)
		case 2: // held by another owner
			t.acquire(t.other(), r)
			add(t.request(r.Name, t.long), store.ErrNotHeld)
		}
	}
	errs := t.first.Renew(t.Context(), batch)
	if len(errs) != len(batch) {
		t.Fatalf("renew of %d leases: %d results, want one each", len(batch), len(errs))
	}
	for i, r := range batch {
		if !errors.Is(errs[i], want[i]) {
			t.Errorf("renew: lease %d of %d: got %v, want %v", i, n, errs[i], want[i])
			continue
		}
		if want[i] == nil {
			t.lasts("renewed in a batch", r, t.long, start)
		}
	}
}
