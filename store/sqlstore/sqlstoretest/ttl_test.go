package sqlstoretest

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// A TTL is limited only by MaxTTL. One above a minute is in the tables before it is granted, in
// whatever way it is asked for.
func TestLongTTL(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, schema := on.newStore(t)
		recorded := func(want time.Duration) {
			t.Helper()
			var is int64
			if err := on.handle(t).QueryRowContext(t.Context(), "SELECT longest FROM "+schema+".meta").Scan(&is); err != nil || is != want.Microseconds() {
				t.Errorf("recorded: %d us, %v, want %v", is, err, want)
			}
		}
		long := lease("x")
		long.TTL = 10 * time.Minute
		limited := on.open(t, schema, sqlstore.Options{MaxTTL: time.Minute})
		if _, err := limited.Acquire(t.Context(), store.AcquireRequest{Lease: long}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("acquire with a TTL over MaxTTL: %v, want %v", err, store.ErrInvalid)
		}
		s := on.open(t, schema, sqlstore.Options{})
		mustAcquire(t, s, lease("short"))
		recorded(0)
		mustAcquire(t, s, long)
		recorded(10 * time.Minute)
		long.TTL *= 2
		if err := s.Renew(t.Context(), []store.Lease{long})[0]; err != nil {
			t.Error(err)
		}
		recorded(20 * time.Minute)
		next := lease("x")
		next.TTL = 30 * time.Minute
		if _, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: long}, store.WaitRequest{Lease: next}); err != nil {
			t.Error(err)
		}
		recorded(30 * time.Minute)
		next.TTL = 40 * time.Minute
		wait(t, s, next).granted(t)
		recorded(40 * time.Minute)
		mustAcquire(t, s, lease("another"))
		recorded(40 * time.Minute)
	})
}
