package redisstore_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// openAsLocker opens a store as a user with the rights of one that locks, and closes it at the end
// of the test.
func openAsLocker(t *testing.T, servers []*redistest.Server) (*store.Store, ruled) {
	t.Helper()
	rule, err := redisadmin.ACL{User: "locker", Prefix: "jobs/", Uses: redisadmin.ToLock}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	r := ruled{t, servers, "", long}
	r.apply(rule)
	s, err := redisstore.Open(t.Context(), r.url(), patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, r
}

// The rule for a user that locks is enough for locks that several can hold.
func TestSharesWithLeastPrivilege(t *testing.T) {
	servers := redistest.StartN(t, 1)
	s, r := openAsLocker(t, servers)
	writer, reader := shared("jobs/1", store.ReadWrite, store.ReadWriteLimit), shared("jobs/1", store.ReadWrite, 1)
	acquire(t, s, writer)
	done := wait(t, t.Context(), s, servers, reader)
	if _, err := s.Downgrade(t.Context(), writer); err != nil {
		t.Error(err)
	}
	mustRelease(t, s, reader, grantedSoon(t, done))
	writer.Weight = 1
	if err := s.Renew(t.Context(), []store.Lease{writer})[0]; err != nil {
		t.Error(err)
	}
	mustRelease(t, s, writer, store.Grant{})

	permit, next := shared("jobs/2", store.Semaphore(2), 2), shared("jobs/2", store.Semaphore(3), 1)
	g := acquire(t, s, permit)
	if err := s.Resize(t.Context(), permit.Name, store.Semaphore(2), store.Semaphore(3)); err != nil {
		t.Error(err)
	}
	acquire(t, s, next)
	if st, err := s.Inspect(t.Context(), permit.Name); err != nil || len(st.Holders) != 2 {
		t.Errorf("inspect: %+v, %v, want two holders", st, err)
	}
	if _, err := s.BreakLease(t.Context(), store.BreakRequest{Name: permit.Name, Owner: permit.Owner, Token: g.Token, Now: true}); err != nil {
		t.Error(err)
	}
	if err := r.excess(); err != nil {
		t.Error(err)
	}
}
