package redisdoor

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// slowRelease is a store that is asked to release a lock and answers when it is told to, or when
// the context ends.
type slowRelease struct {
	store.Engine
	asked  chan store.ReleaseRequest
	answer chan bool
}

func (s slowRelease) Release(ctx context.Context, r store.ReleaseRequest) error {
	s.asked <- r
	select {
	case <-s.answer:
		return s.Engine.Release(ctx, r)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A release that was sent last, and whose client then broke the connection, is done.
func TestReleaseOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	s := slowRelease{memstore.New(nil).Engine(), make(chan store.ReleaseRequest, 1), make(chan bool, 1)}
	address, st := open(t, Options{Store: store.New(s)})
	t.Cleanup(func() { st.Close() })
	gone, other := dial(t, address), dial(t, address)
	gone.wants("OK", "SET lock v NX PX 600000")
	gone.send(encode("DELIFEQ", "lock", "v"))
	<-s.asked
	if err := gone.nc.(*net.TCPConn).SetLinger(0); err != nil { // so that Close resets it
		t.Fatal(err)
	}
	gone.nc.Close()
	for range 10 { // meanwhile the server sees it
		other.wants("PONG", "PING")
	}
	s.answer <- true
	for until := time.Now().Add(20 * time.Second); other.says("SET lock w NX PX 600000") != "OK"; {
		if time.Now().After(until) {
			t.Fatal("the lock stays taken")
		}
		time.Sleep(time.Millisecond)
	}
}

// lostRenewals is a store whose answers to renewals are lost.
type lostRenewals struct{ slowRelease }

func (s lostRenewals) Renew(ctx context.Context, leases []store.Lease) []error {
	s.Engine.Renew(ctx, leases)
	return []error{errors.New("the answer is lost")}
}

// A release after a renewal whose answer was lost says so, since the renewal may still be under way.
func TestReleaseAfterLostRenewal(t *testing.T) {
	t.Parallel()
	s := slowRelease{memstore.New(nil).Engine(), make(chan store.ReleaseRequest, 1), make(chan bool, 1)}
	s.answer <- true
	address, st := open(t, Options{Store: store.New(lostRenewals{s})})
	t.Cleanup(func() { st.Close() })
	c := dial(t, address)
	c.wants("OK", "SET lock v NX PX 600000")
	c.wants("(error) ERR the answer is lost", "SET lock v XX PX 700000")
	c.wants("(integer) 1", "DELIFEQ lock v")
	if r := <-s.asked; !r.Renewed {
		t.Error("the store is not told of the renewal")
	}
}
