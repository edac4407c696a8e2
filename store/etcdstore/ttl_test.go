package etcdstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// A TTL is limited only by MaxTTL. One above a minute is recorded in the cluster before it is
// granted. If a backup is restored, a client that has read it in either data grants nothing for
// as long.
func TestLongTTL(t *testing.T) {
	t.Parallel()
	c := launch(t, etcdtest.Options{})
	o := etcdstore.Options{Timeout: 30 * time.Second}
	other := open(t, c.Endpoints(), o) // it has not read a long TTL
	client := native(t, c.Endpoints())
	recorded := func(want string) {
		t.Helper()
		r, err := client.Get(t.Context(), "leasehold/!longest")
		if err != nil {
			t.Fatal(err)
		}
		is := ""
		if len(r.Kvs) == 1 {
			is = string(r.Kvs[0].Value)
		}
		if is != want {
			t.Errorf("recorded: %q, want %q", is, want)
		}
	}
	long := request("x", 10*time.Minute)
	limited := open(t, c.Endpoints(), etcdstore.Options{MaxTTL: time.Minute})
	if _, err := limited.Acquire(t.Context(), store.AcquireRequest{Lease: long}); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("acquire with a TTL over MaxTTL: %v, want %v", err, store.ErrInvalid)
	}
	s := open(t, c.Endpoints(), o)
	acquire(t, s, request("short", time.Minute))
	recorded("")
	early, err := c.Members[0].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	acquire(t, s, long)
	recorded("10m0s")
	late, err := c.Members[0].Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	long.TTL *= 2
	if err := s.Renew(t.Context(), []store.Lease{long})[0]; err != nil {
		t.Error(err)
	}
	recorded("20m0s")
	next := request("x", 30*time.Minute)
	if _, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: long}, store.WaitRequest{Lease: next}); err != nil {
		t.Error(err)
	}
	recorded("30m0s")
	next.TTL = 40 * time.Minute
	if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil); err != nil {
		t.Error(err)
	}
	recorded("40m0s")
	acquire(t, other, request("z", time.Minute)) // so that it sees that the revision goes back

	quarantined := func(s *store.Store, long time.Duration) {
		t.Helper()
		eventually.True(t, "nothing is granted for as long", func() bool {
			_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("y", time.Second)})
			var q *store.QuorumError
			if !errors.As(err, &q) || q.Count(store.Quarantined) != 1 {
				t.Fatalf("acquire in restored data: %v, want a quarantine", err)
			}
			left, _ := q.OpensIn()
			return left > long-time.Minute
		})
	}
	if err := c.Members[0].Restore(late); err != nil {
		t.Fatal(err)
	}
	quarantined(s, 40*time.Minute)
	quarantined(other, 10*time.Minute)
	if err := c.Members[0].Restore(early); err != nil {
		t.Fatal(err)
	}
	quarantined(s, 40*time.Minute)
	quarantined(other, 10*time.Minute)
}
