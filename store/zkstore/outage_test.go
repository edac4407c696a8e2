package zkstore

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/store"
)

// A server that accepts connections and never answers does not keep a store from the
// others, although it is named first.
func TestOpenPassesASilentServer(t *testing.T) {
	t.Parallel() // it mostly waits
	p := faultproxy.New(t, shared.Addr)
	p.Blackhole()
	s := mustOpen(t, &Options{servers: []string{p.Addr(), shared.Addr}, shuffle: func(int, func(i, j int)) {}})
	l := request("beside a silent server", 5*time.Second)
	mustAcquire(t, s, l)
	mustRelease(t, s, l)
}

// Calls that were abandoned during an outage leave no goroutines behind, and no request that
// is sent once it is over.
func TestCallsGivenUpInAnOutage(t *testing.T) {
	s, p := proxied(t)
	l := request("given up in an outage", 20*time.Second)
	mustAcquire(t, s, l)
	p.RefuseNew()
	p.Cut()
	eventually.True(t, "the connection is lost", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := s.Inspect(ctx, l.Name)
		return err != nil
	})
	waiting := func() int {
		all := make([]byte, 4<<20)
		return strings.Count(string(all[:runtime.Stack(all, true)]), "zk.(*Session).reach")
	}
	for range 50 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		_, err := s.Acquire(ctx, store.AcquireRequest{Lease: request("another", l.TTL)})
		if err == nil {
			t.Error("granted in an outage")
		}
		if err := s.Renew(ctx, []store.Lease{l})[0]; err == nil || errors.Is(err, store.ErrNotHeld) {
			t.Errorf("renew in an outage: %v, want an error that says nothing of the lease", err)
		}
		cancel()
	}
	eventually.True(t, "no request without a caller waits for a connection", func() bool { return waiting() == 0 })
	p.Pass()
}

// While the servers elect a leader, they close each connection at once. Open waits until they serve, also
// if the leader before is silent.
func TestOpenWaitsForAnElection(t *testing.T) {
	for name, silent := range map[string]bool{"alone": false, "beside a silent server": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var group sync.WaitGroup
			group.Go(func() { elects(l, &group) })
			servers := []string{l.Addr().String()}
			if silent {
				p := faultproxy.New(t, shared.Addr)
				p.Blackhole()
				servers = append(servers, p.Addr())
			}
			s := mustOpen(t, &Options{servers: servers, Timeout: patience})
			lease := request("after an election "+name, 5*time.Second)
			mustAcquire(t, s, lease)
			mustRelease(t, s, lease)
			s.Close()
			l.Close()
			group.Wait()
		})
	}
}

// elects passes connections on to the shared server, except the first ones, which it closes.
func elects(l net.Listener, group *sync.WaitGroup) {
	for n := 0; ; n++ {
		from, err := l.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", shared.Addr)
		if n < 2 || err != nil {
			from.Close()
			to.Close()
			continue
		}
		group.Go(func() { _, _ = io.Copy(to, from); to.Close() })
		group.Go(func() { _, _ = io.Copy(from, to); from.Close() })
	}
}

// patientServer starts a server with so long a tick that no waiter looks by itself during a test. It
// returns the TTL for that.
func patientServer(t *testing.T) (*zktest.Server, time.Duration) {
	t.Helper()
	server, err := zktest.Launch(zktest.Options{Tick: time.Minute, Settings: []string{"maxSessionTimeout=1200000", "4lw.commands.whitelist=srvr,wchp"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server, 10 * time.Minute
}

// Waiters whose connection breaks are told on the next one of what has changed meanwhile. Those for whom
// nothing has changed ask for nothing: if each listed the queue, a long queue would stand still
// after each restart of the server.
func TestWaitersReconnect(t *testing.T) {
	t.Parallel() // it mostly waits
	server, ttl := patientServer(t)
	p := faultproxy.New(t, server.Addr)
	s, other := mustOpen(t, &Options{servers: []string{p.Addr()}}), mustOpen(t, &Options{servers: []string{server.Addr}})
	const waiters = 40
	first := request("reconnected", ttl)
	mustAcquire(t, other, first)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	var all []store.Lease
	outcomes := make([]error, waiters)
	for i := range waiters {
		l := request(first.Name, ttl)
		all = append(all, l)
		group.Go(func() {
			_, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
			if err == nil {
				err = s.Release(ctx, store.ReleaseRequest{Lease: l})
			}
			outcomes[i] = err
		})
	}
	watched := func() int {
		text, err := server.Ask("wchp")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(text, "/"+first.Name+"/")
	}
	watching := func() { // each place but the last is watched
		eventually.True(t, "all waiters watch", func() bool { return watched() == waiters })
	}
	watching()
	before := p.Stats().Replies.Received
	p.RefuseNew()
	p.Cut()
	eventually.True(t, "the connection is lost", func() bool { return watched() == 0 })
	p.Pass()
	watching()
	const list = waiters * 50 // bytes at least
	if n := p.Stats().Replies.Received - before; n > waiters/4*list {
		t.Errorf("after their connection was lost, %d waiters were sent %d bytes: more than %d lists of the queue", waiters, n, waiters/4)
	}
	p.RefuseNew()
	p.Cut()
	eventually.True(t, "the connection is lost", func() bool { return watched() == 0 })
	removed := waiters / 2
	if err := other.Release(ctx, store.ReleaseRequest{Lease: all[removed]}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release of a waiter: %v, want %v", err, store.ErrNotHeld)
	}
	mustRelease(t, other, first)
	p.Pass()
	group.Wait()
	for i, err := range outcomes {
		if i == removed && !errors.Is(err, store.ErrNotHeld) || i != removed && err != nil {
			t.Errorf("waiter %d: %v, want it to wait, unless it was removed", i, err)
		}
	}
}
