package rueidisnode

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// Locks through rueidis are those of redisstore: they exclude each other, tokens increase,
// and a release frees both.
func TestSameLocks(t *testing.T) {
	addr := redistest.Start(t).Addr()
	s, err := Open(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	through, own := leasehold.New(s, nil).Mutex("x"), leasehold.New(store.New(s.Engine().(*engine).Engine), nil).Mutex("x")
	var last fence.Token
	for range 3 {
		for _, pair := range [][2]*leasehold.Lock{{through, own}, {own, through}} {
			l, err := pair[0].Try(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if l.Token() <= last {
				t.Errorf("token %d after %d, want a larger one", l.Token(), last)
			}
			last = l.Token()
			if _, err := pair[1].Try(t.Context()); !errors.Is(err, store.ErrBusy) {
				t.Errorf("a second holder: %v, want %v", err, store.ErrBusy)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	leases := []store.Lease{{Name: "y", Owner: "o", TTL: time.Minute}}
	if errs := s.Renew(t.Context(), leases); !errors.Is(errs[0], store.ErrNotHeld) {
		t.Errorf("renewed a lease that does not exist: %v, want %v", errs[0], store.ErrNotHeld)
	}
}
