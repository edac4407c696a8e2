package etcdstore

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An endpoint at which nothing listens does not use up the time of a call, whether or not there is
// a user: the next one is asked at once.
func TestDeadEndpointTakesNoTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for _, user := range []string{"", "me"} {
		e := newMember(l.Addr().String())
		var unconnected *unconnectedError
		err = e.try(t.Context(), Options{Timeout: time.Hour, Username: user, Password: user}, time.Hour, func(ctx context.Context, c *client) error {
			t.Errorf("user %q: a request is sent without a connection", user)
			return nil
		})
		if !errors.As(err, &unconnected) || !faultOf(err).certain || !faultOf(err).again {
			t.Errorf("user %q: %v, want that it cannot connect, and another try", user, err)
		}
		e.close()
	}
}

// Those that need a member which accepts connections and does not answer, as one that is stopped,
// wait for one login and not for each other. The login holds up nobody whose context ends.
func TestCallersShareALogin(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepted atomic.Int64
	began := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer l.Close()
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if accepted.Add(1) == 1 {
				close(began)
			}
		}
	})
	e, o := newMember(l.Addr().String()), Options{Timeout: time.Hour, Username: "me", Password: "me"}
	defer e.close()
	try := func(ctx context.Context) error {
		return e.try(ctx, o, time.Hour, func(ctx context.Context, c *client) error {
			t.Error("a request is sent without a login")
			return nil
		})
	}
	var callers sync.WaitGroup
	call := func() {
		if err := try(t.Context()); err == nil || !faultOf(err).again {
			t.Errorf("%v, want another try", err)
		}
	}
	callers.Go(call)
	<-began
	const others = 5
	for range others {
		callers.Go(call)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := try(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
	callers.Wait()
	if n := accepted.Load(); n > others {
		t.Errorf("%d connections for the logins of %d callers, want one for all", n, others+1)
	}
}
