package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// With a majority down, a look says what the other servers know: a lease that a majority may have
// may be held. A store that is opened to lock is refused.
func TestLooksWithAMajorityDown(t *testing.T) {
	servers := redistest.StartN(t, 5)
	whole := open(t, addrs(servers), nil)
	r := request("a")
	acquire(t, whole, r)
	acquire(t, whole, request("b"))
	for _, s := range servers[2:] {
		s.Kill()
	}
	url := "redis://" + strings.Join(addrs(servers), ",")
	if _, err := store.Open(t.Context(), url, nil); !errors.Is(err, store.ErrQuorum) {
		t.Errorf("open: %v, want %v", err, store.ErrQuorum)
	}
	st, err := store.Open(t.Context(), url, &store.OpenOptions{Partial: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for name, look := range map[string]func() (store.State, error){
		"Inspect": func() (store.State, error) { return st.Inspect(t.Context(), "a") },
		"List": func() (store.State, error) {
			all, err := st.List(t.Context(), "")
			if len(all) != 2 {
				t.Errorf("List returns %d locks, want 2", len(all))
				return store.State{}, err
			}
			return all[0], err
		},
	} {
		s, err := look()
		if !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "2 of 5 servers answered, 3 are needed") || strings.Contains(err.Error(), "granted") {
			t.Errorf("%s: %v, want how many servers answered", name, err)
		}
		if s.Held || len(s.Undecided) != 1 || s.Undecided[0].Holder.Owner != r.Owner || len(s.Nodes) != 5 {
			t.Errorf("%s: %+v, want the lease of %s as one that may be held", name, s, r.Owner)
		}
	}
	for _, s := range servers[:2] {
		s.Kill()
	}
	if st, err := store.Open(t.Context(), url, &store.OpenOptions{Partial: true}); !errors.Is(err, store.ErrQuorum) {
		t.Errorf("open with all servers down: %v, %v, want %v", st, err, store.ErrQuorum)
	}
}

// An error about a server that has answered before does not ask whether it speaks TLS.
func TestNoHintAboutTLSAfterAnAnswer(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	var dials atomic.Int32
	o := patient()
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	s := open(t, addrs(proxies), o)
	acquire(t, s, request("a"))
	before := dials.Load()
	proxies[0].RefuseNew()
	proxies[0].Cut()
	eventually.True(t, "two new connections are reset", func() bool {
		_, err := s.Inspect(t.Context(), "a")
		if err != nil && strings.Contains(err.Error(), "TLS") {
			t.Fatalf("inspect: %v, want no word of TLS", err)
		}
		return err != nil && dials.Load() > before+2
	})
}
