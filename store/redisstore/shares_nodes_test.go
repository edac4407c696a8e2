package redisstore_test

import (
	"errors"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// A majority of several servers keeps a read-write lock: readers hold it together, a writer alone,
// and tokens rise from a writer to readers and the next writer.
func TestReadWriteOnServers(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s, other := open(t, addrs(servers), nil), open(t, addrs(servers), nil)
	writer, one, two := shared("stock", store.ReadWrite, store.ReadWriteLimit), shared("stock", store.ReadWrite, 1), shared("stock", store.ReadWrite, 1)
	w := takes(t, s, servers, writer) // a slow server could give it to a reader
	_, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: one})
	var busy *store.BusyError
	if !errors.As(err, &busy) || busy.Holder.Owner != writer.Owner {
		t.Fatalf("acquire as a reader beside a writer: %v, want a *BusyError that names the writer", err)
	}
	first := wait(t, t.Context(), other, servers, one)
	second := wait(t, t.Context(), s, servers, two)
	down, err := s.Downgrade(t.Context(), writer)
	if err != nil || down.Token <= w.Token {
		t.Fatalf("downgrade after token %v: %+v, %v", w.Token, down, err)
	}
	writer.Weight = 1
	r1, r2 := grantedSoon(t, first), grantedSoon(t, second)
	for _, g := range []store.Grant{r1, r2} {
		if g.Token <= w.Token {
			t.Errorf("a reader has token %v, want one above the writer's %v", g.Token, w.Token)
		}
	}
	one.Owner, two.Owner = r1.Lease.Owner, r2.Lease.Owner
	st, err := other.Inspect(t.Context(), "stock")
	if err != nil || len(st.Holders) != 3 || st.Kind != store.ReadWrite {
		t.Fatalf("inspect: %+v, %v, want three readers", st, err)
	}
	for _, err := range s.Renew(t.Context(), []store.Lease{writer, one, two}) {
		if err != nil {
			t.Error(err)
		}
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 1 || len(list[0].Holders) != 3 {
		t.Errorf("list: %+v, %v, want one lock with three holders", list, err)
	}
	last := shared("stock", store.ReadWrite, store.ReadWriteLimit)
	done := wait(t, t.Context(), s, servers, last)
	for _, r := range []store.Lease{writer, one, two} {
		if err := other.Release(t.Context(), store.ReleaseRequest{Lease: r, Renewed: true}); err != nil {
			t.Error(err)
		}
	}
	g := grantedSoon(t, done)
	if g.Token <= max(down.Token, r1.Token, r2.Token) {
		t.Errorf("a writer has token %v, want one above those of the readers: %v, %v and %v", g.Token, down.Token, r1.Token, r2.Token)
	}
	mustRelease(t, s, last, g)
}
