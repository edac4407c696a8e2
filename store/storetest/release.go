package storetest

import "github.com/leasehold-dev/leasehold/store"

// checkReleaseByOwnerOnly: an owner cannot release another owner's lease.
func checkReleaseByOwnerOnly(t *trial) {
	r := t.request(t.name(), t.long)
	g := t.acquire(t.first, r)
	for _, s := range t.handles() {
		stranger := t.request(r.Name, t.long)
		t.notHeld("release by somebody else", s.Release(t.Context(), store.ReleaseRequest{Lease: stranger}))
		if st := t.heldBy(r); st.Token != g.Token {
			t.Fatalf("release by somebody else: token went from %v to %v", g.Token, st.Token)
		}
		t.refuse(s, t.request(r.Name, t.long))
	}
	// Another handle may release for its owner.
	t.release(t.other(), r)
	t.free(r.Name)
}

// checkReleaseTwice: Release reports whether there was a lease to release.
func checkReleaseTwice(t *trial) {
	never := t.request(t.name(), t.long)
	t.notHeld("release of a lock nobody ever had", t.first.Release(t.Context(), store.ReleaseRequest{Lease: never}))
	t.free(never.Name)

	r := t.request(t.name(), t.long)
	t.acquire(t.first, r)
	t.release(t.first, r)
	for _, s := range t.handles() {
		t.notHeld("release again", s.Release(t.Context(), store.ReleaseRequest{Lease: r}))
	}
	next := t.request(r.Name, t.long)
	t.acquire(t.other(), next)
	t.notHeld("release again, after somebody else got the lock", t.first.Release(t.Context(), store.ReleaseRequest{Lease: r}))
	t.heldBy(next)
	t.release(t.other(), next)
}
