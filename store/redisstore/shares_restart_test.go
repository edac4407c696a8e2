package redisstore_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
	"github.com/leasehold-dev/leasehold/store"
)

// One of three servers is down, and the others restart with data from before a reader's lease was ended and a writer
// came. The reader does not know of its end, and renews. Another reader that joins it there draws
// a token, since theirs would be smaller than the writer's, which the servers have forgotten.
func TestReadersDrawATokenAfterAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, hosts := bubbled(t, 3)
		reads, other := openBubbled(t, network, hosts, nil), openBubbled(t, network, hosts, nil)
		reader, writer, second := shared("stock", store.ReadWrite, 1), shared("stock", store.ReadWrite, store.ReadWriteLimit), shared("stock", store.ReadWrite, 1)
		acquire(t, reads, reader)
		onDisk := make([]simredis.Data, len(hosts))
		for i, h := range hosts {
			h.With(func(s *simredis.Server) { onDisk[i] = s.Data() })
		}
		if err := other.Release(t.Context(), store.ReleaseRequest{Lease: reader}); err != nil {
			t.Fatal(err)
		}
		w := acquire(t, other, writer)
		for i, h := range hosts[:2] {
			h.With(func(s *simredis.Server) { s.Load(onDisk[i]) })
			h.Restart(true)
		}
		hosts[2].Kill()
		g := joinsAfterQuarantine(t, reads, other, reader, second)
		if g.Token <= w.Token {
			t.Errorf("a reader has token %v after the writer's %v", g.Token, w.Token)
		}
		third := shared("stock", store.ReadWrite, 1)
		if next := acquire(t, other, third); next.Token != g.Token {
			t.Errorf("a reader beside it has token %v, want the same as %v", next.Token, g.Token)
		}
	})
}

// joinsAfterQuarantine renews a reader's lease until another reader is granted the lock beside it.
func joinsAfterQuarantine(t *testing.T, s, other *store.Store, reader, second store.Lease) store.Grant {
	t.Helper()
	for range 20 {
		time.Sleep(reader.TTL / 3)
		if err := errors.Join(s.Renew(t.Context(), []store.Lease{reader})...); err != nil {
			t.Fatalf("the servers have lost the reader's lease: %v", err)
		}
		g, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: second})
		if err == nil {
			return g
		}
		second.Owner = store.NewOwner()
	}
	t.Fatal("the servers stay in quarantine")
	return store.Grant{}
}
