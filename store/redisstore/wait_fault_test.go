package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// patientWaiter returns the request of a waiter that refreshes its places so seldom that it learns
// by a push what it learns soon.
func patientWaiter(name string) store.Lease {
	r := waiter(name)
	r.TTL = time.Minute
	return r
}

// soon is far less than the time after which a patient waiter asks again, and far more than a push
// takes.
const soon = 10 * time.Second

func grantedSoon(t *testing.T, done <-chan outcome) store.Grant {
	t.Helper()
	select {
	case o := <-done:
		if o.err != nil {
			t.Fatal(o.err)
		}
		return o.grant
	case <-time.After(soon):
		t.Fatalf("the waiter was not granted the lock within %v", soon)
	}
	panic("unreachable")
}

// A waiter whose connection is gone is skipped in the same step.
func TestDeadWaiterIsSkipped(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			proxies := behind(t, servers)
			s, dies := open(t, addrs(servers), nil), open(t, addrs(proxies), nil)
			held := request("stock")
			takes(t, s, servers, held)
			ctx, cancel := context.WithCancel(t.Context())
			dead := wait(t, ctx, dies, servers, patientWaiter("stock"))
			next := patientWaiter("stock")
			done := wait(t, t.Context(), s, servers, next)
			for i, p := range proxies {
				p.RefuseNew()
				p.Cut()
				eventually.True(t, "the server has noticed that the connection is gone", func() bool {
					return strings.Count(servers[i].Text(t, "CLIENT", "LIST", "TYPE", "pubsub"), "name=leasehold") == 1
				})
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, s, next, grantedSoon(t, done))
			cancel()
			if o := <-dead; !errors.Is(o.err, context.Canceled) {
				t.Errorf("the wait of the dead waiter: %+v, want %v", o, context.Canceled)
			}
		})
	}
}

// The holder dies, and with it all waiters except the last. The last one gets the lock when the
// lease is over, before it refreshes its place.
func TestHolderAndFirstWaitersDie(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			proxies := behind(t, servers)
			s, dies := open(t, addrs(servers), nil), open(t, addrs(proxies), nil)
			held := request("stock")
			held.TTL = 4 * time.Second
			takes(t, s, servers, held) // and does not renew it
			ctx, cancel := context.WithCancel(t.Context())
			var dead []<-chan outcome
			for range 5 {
				dead = append(dead, wait(t, ctx, dies, servers, patientWaiter("stock")))
			}
			next := patientWaiter("stock")
			done := wait(t, t.Context(), s, servers, next)
			for i, p := range proxies {
				p.RefuseNew()
				p.Cut()
				eventually.True(t, "the server has noticed that the connection is gone", func() bool {
					return strings.Count(servers[i].Text(t, "CLIENT", "LIST", "TYPE", "pubsub"), "name=leasehold") == 1
				})
			}
			mustRelease(t, s, next, grantedSoon(t, done))
			cancel()
			for _, d := range dead {
				if o := <-d; !errors.Is(o.err, context.Canceled) {
					t.Errorf("a dead waiter was granted: %+v", o)
				}
			}
		})
	}
}

// A push is lost while the connection is down. The waiter asks when the connection is up
// again.
func TestLostPush(t *testing.T) {
	servers := redistest.StartN(t, 1)
	proxies := behind(t, servers)
	s, unreached := open(t, addrs(servers), nil), open(t, addrs(proxies), nil)
	held, next := request("stock"), patientWaiter("stock")
	takes(t, s, servers, held)
	done := wait(t, t.Context(), unreached, servers, next)
	for _, p := range proxies {
		p.DropReplies()
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	for i, p := range proxies {
		eventually.True(t, "the lock was handed on", func() bool { return strings.HasPrefix(servers[i].Text(t, "GET", "stock"), next.Owner) })
		p.Await(t, "the message is lost", func(st faultproxy.Stats) bool { return st.Replies.Lost > 0 })
	}
	select {
	case o := <-done:
		t.Fatalf("the waiter has got a push that was lost: %+v", o)
	default:
	}
	for _, p := range proxies {
		p.Cut()
		p.Pass()
	}
	mustRelease(t, unreached, next, grantedSoon(t, done))
}

// A waiter gets the lock although its connection breaks again and again.
func TestConnectionIsKilled(t *testing.T) {
	servers := redistest.StartN(t, 1)
	s := open(t, addrs(servers), nil)
	held, next := request("stock"), patientWaiter("stock")
	takes(t, s, servers, held)
	done := wait(t, t.Context(), s, servers, next)
	for range 3 {
		servers[0].Text(t, "CLIENT", "KILL", "TYPE", "pubsub")
		eventually.True(t, "the client is subscribed again", func() bool {
			return strings.Contains(servers[0].Text(t, "CLIENT", "LIST", "TYPE", "pubsub"), "name=leasehold")
		})
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, next, grantedSoon(t, done))
}

// All servers are restarted with empty memory, and the queue is built anew.
func TestRestartWhileWaiting(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			s := open(t, addrs(servers), &redisstore.Options{MaxTTL: time.Minute})
			held := request("stock")
			takes(t, s, servers, held)
			a, b := patientWaiter("stock"), patientWaiter("stock")
			gotA := wait(t, t.Context(), s, servers, a)
			gotB := wait(t, t.Context(), s, servers, b)
			for _, server := range servers {
				server.Kill()
			}
			for _, server := range servers {
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
				server.Declare() // otherwise its quarantine lasts for a minute
			}
			var first, second outcome
			r := a
			select {
			case first = <-gotA:
			case first = <-gotB:
				r, gotB = b, gotA
			case <-time.After(soon):
				t.Fatalf("no waiter got the lock within %v", soon)
			}
			if first.err != nil {
				t.Fatal(first.err)
			}
			mustRelease(t, s, r, first.grant)
			second.grant = grantedSoon(t, gotB)
			if second.grant.Token <= first.grant.Token {
				t.Errorf("token %d after %d, want a larger one", second.grant.Token, first.grant.Token)
			}
		})
	}
}

// A user without the rights to publish and to subscribe can still wait.
func TestWaitingWithoutRights(t *testing.T) {
	t.Parallel() // it mostly waits
	r := ruled{t: t, servers: redistest.StartN(t, 3)}
	rule, err := redisadmin.ACL{User: "locker", Uses: redisadmin.ToLock}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	for _, lacks := range [][]string{{"publish"}, {"subscribe"}, {"&leasehold:to:*"}, {"publish", "subscribe", "&leasehold:to:*"}} {
		t.Run(strings.Join(lacks, " "), func(t *testing.T) {
			var less []string
			for _, word := range rule {
				if !strings.Contains(strings.Join(lacks, " ")+" ", strings.TrimPrefix(word, "+")+" ") {
					less = append(less, word)
				}
			}
			if len(less) != len(rule)-len(lacks) {
				t.Fatalf("%q without %q is %q", rule, lacks, less)
			}
			r.apply(less)
			s, err := r.open()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			held, next := request("a"), patientWaiter("a")
			if next.TTL = time.Minute; lacks[0] == "publish" && len(lacks) == 1 {
				next.TTL = 6 * time.Second // only the push of the release fails
			}
			takes(t, s, r.servers, held)
			done := waits(t.Context(), s, next)
			for _, server := range r.servers {
				eventually.True(t, "the waiter has a place", func() bool { return server.Text(t, "EXISTS", "{a}:place:"+next.Owner) == "1" })
			}
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
				t.Fatal(err)
			}
			mustRelease(t, s, next, grantedSoon(t, done))
		})
	}
}

// A waiter on a server that supports only version 2 of the protocol, and cannot push over the
// connection of the requests, polls.
func TestWaitingWithoutPush(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes, "--rename-command", "HELLO", "")
			s := open(t, addrs(servers), nil)
			held, next := request("stock"), patientWaiter("stock")
			takes(t, s, servers, held)
			done := waits(t.Context(), s, next)
			for _, server := range servers {
				eventually.True(t, "the place has the no-push flag", func() bool { return strings.HasPrefix(server.Text(t, "GET", "{stock}:place:"+next.Owner), "1") })
			}
			mustRelease(t, s, held, store.Grant{})
			mustRelease(t, s, next, grantedSoon(t, done))
		})
	}
}

// The right to subscribe is taken away from a waiter, which also breaks the connection.
func TestRightsAreTakenAway(t *testing.T) {
	t.Parallel() // it mostly waits
	r := ruled{t: t, servers: redistest.StartN(t, 3)}
	rule, err := redisadmin.ACL{User: "locker", Uses: redisadmin.ToLock}.Rule()
	if err != nil {
		t.Fatal(err)
	}
	r.apply(rule)
	s, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	held, next := request("a"), patientWaiter("a")
	takes(t, s, r.servers, held)
	done := wait(t, t.Context(), s, r.servers, next)
	for _, server := range r.servers {
		server.Text(t, "ACL", "SETUSER", "locker", "-subscribe", "resetchannels")
		server.Text(t, "CLIENT", "KILL", "TYPE", "pubsub")
	}
	for _, server := range r.servers {
		eventually.True(t, "the place has the no-push flag", func() bool { return strings.HasPrefix(server.Text(t, "GET", "{a}:place:"+next.Owner), "1") })
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, next, grantedSoon(t, done))
}

// A waiter gets the lock that another client releases without a notification.
func TestWaitingForAnotherClient(t *testing.T) {
	servers := redistest.StartN(t, 1)
	s := open(t, addrs(servers), nil)
	servers[0].Text(t, "SET", "stock", "stranger", "PX", "600000")
	next := patientWaiter("stock")
	done := wait(t, t.Context(), s, servers, next)
	servers[0].Text(t, "DEL", "stock")
	mustRelease(t, s, next, grantedSoon(t, done))
}

// If the queue's key has a value of another type, a waiter gets an error, and locks without waiters
// work.
func TestWaitingWithoutAQueue(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := open(t, addrs(servers), nil)
	for _, server := range servers {
		server.Text(t, "SET", "{stock}:line", "x")
	}
	held := request("stock")
	takes(t, s, servers, held)
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if _, err := s.Wait(ctx, store.WaitRequest{Lease: patientWaiter("stock")}, nil); err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("wait: %v, want WRONGTYPE", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	next := waiter("stock")
	g, err := s.Wait(t.Context(), store.WaitRequest{Lease: next}, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, next, g)
}

// A waiter that gives up is removed on all servers at once, as are the waiters of a store that is closed.
func TestWaiterLeaves(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s, closes := open(t, addrs(servers), nil), open(t, addrs(servers), nil)
	held := request("stock")
	takes(t, s, servers, held)
	ctx, cancel := context.WithCancel(t.Context())
	left := wait(t, ctx, s, servers, patientWaiter("stock"))
	closed := wait(t, t.Context(), closes, servers, patientWaiter("stock"))
	cancel()
	if o := <-left; !errors.Is(o.err, context.Canceled) {
		t.Errorf("the wait that was given up: %+v, want %v", o, context.Canceled)
	}
	closes.Close()
	if o := <-closed; !errors.Is(o.err, store.ErrClosed) {
		t.Errorf("the wait of the closed store: %+v, want %v", o, store.ErrClosed)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, servers)
}

// Many waiters of two stores get the lock one after the other, with rising tokens.
func TestManyWaiters(t *testing.T) {
	for _, nodes := range []int{1, 3, 5} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			servers := redistest.StartN(t, nodes)
			stores := []*store.Store{open(t, addrs(servers), nil), open(t, addrs(servers), nil)}
			var all sync.WaitGroup
			var mu sync.Mutex
			var last fence.Token
			for i := range 40 {
				all.Go(func() {
					s := stores[i%2]
					for range 3 {
						r := patientWaiter("stock")
						g, err := s.Wait(t.Context(), store.WaitRequest{Lease: r}, nil)
						if err != nil {
							t.Error(err)
							return
						}
						if !mu.TryLock() {
							t.Error("two holders at once")
							return
						}
						if g.Token <= last {
							t.Errorf("token %d after %d, want a larger one", g.Token, last)
						}
						last = g.Token
						mu.Unlock()
						mustRelease(t, s, r, g)
					}
				})
			}
			all.Wait()
			nothingLeft(t, servers)
		})
	}
}
