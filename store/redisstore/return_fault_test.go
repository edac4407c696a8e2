package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// turn is a lock with a holder that is about to release it and queue again, and a waiter in
// another client.
type turn struct {
	t       *testing.T
	servers []*redistest.Server
	proxies []*faultproxy.Proxy
	s       *store.Store // the client that holds the lock and rejoins
	other   *store.Store // the client that waits
	held    store.Lease
	first   store.Lease // of the client that waits
	got     <-chan outcome
	next    store.Lease
}

func newTurn(t *testing.T) *turn { return newTurnOf(t, 3) }

func newTurnOf(t *testing.T, nodes int) *turn {
	servers := redistest.StartN(t, nodes)
	r := &turn{t: t, servers: servers, proxies: behind(t, servers)}
	r.s, r.other = open(t, addrs(r.proxies), patient()), open(t, addrs(r.proxies), patient())
	r.held, r.first = request("stock"), patientWaiter("stock")
	takes(t, r.s, servers, r.held)
	r.got = wait(t, t.Context(), r.other, servers, r.first)
	r.next = patientWaiter("stock")
	settled(t, r.s) // so that no connection is idle, which would be probed before use
	return r
}

// rejoin releases the lock and queues again, and the waiter gets it.
func (r *turn) rejoin() store.Grant {
	r.t.Helper()
	queued, err := r.s.ReleaseAndRejoin(r.t.Context(), store.ReleaseRequest{Lease: r.held}, store.WaitRequest{Lease: r.next})
	if err != nil || !queued {
		r.t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
	}
	return grantedSoon(r.t, r.got)
}

// placedAt waits until next has a place at the servers.
func (r *turn) placedAt(servers ...*redistest.Server) {
	r.t.Helper()
	for _, server := range servers {
		eventually.True(r.t, "the client that rejoined has a place", func() bool { return placed(r.t, server, r.next) })
	}
}

// comes waits in the place, gets the lock and releases it.
func (r *turn) comes(g store.Grant) {
	r.t.Helper()
	done := waits(r.t.Context(), r.s, r.next)
	mustRelease(r.t, r.other, r.first, g)
	back := grantedSoon(r.t, done)
	if back.Token <= g.Token {
		r.t.Errorf("token %d after %d, want a larger one", back.Token, g.Token)
	}
	mustRelease(r.t, r.s, r.next, back)
}

// asks is comes for a next that has no place at one of the servers yet.
func (r *turn) asks(server *redistest.Server, g store.Grant) {
	r.t.Helper()
	done := waits(r.t.Context(), r.s, r.next)
	asked := time.Now()
	eventually.True(r.t, "the client asks the server on which it has no place", func() bool {
		if time.Since(asked) > soon { // it refreshes its places only later
			r.t.Fatal("the client does not ask the server on which it has no place")
		}
		return placed(r.t, server, r.next)
	})
	mustRelease(r.t, r.other, r.first, g)
	mustRelease(r.t, r.s, r.next, grantedSoon(r.t, done))
}

// givesUp releases the place, and then the lock.
func (r *turn) givesUp(g store.Grant) {
	r.t.Helper()
	if err := r.s.Release(r.t.Context(), store.ReleaseRequest{Lease: r.next}); !errors.Is(err, store.ErrNotHeld) {
		r.t.Errorf("release of the place: %v, want %v", err, store.ErrNotHeld)
	}
	mustRelease(r.t, r.other, r.first, g)
}

var afterwards = map[string]func(*turn, store.Grant){"comes back": (*turn).comes, "gives up": (*turn).givesUp}

// If one server of three is dead, the other two release and keep the place.
func TestRejoinWithADeadServer(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, ends := range afterwards {
		t.Run(name, func(t *testing.T) {
			r := newTurn(t)
			r.servers[1].Kill()
			g := r.rejoin()
			r.placedAt(r.servers[0], r.servers[2])
			ends(r, g)
			nothingLeft(t, []*redistest.Server{r.servers[0], r.servers[2]})
		})
	}
}

// A server that was away during the rejoin is asked for a place as soon as it is back and
// the client waits.
func TestRejoinWithAServerThatWasAway(t *testing.T) {
	r := newTurn(t)
	r.proxies[1].RefuseNew()
	r.proxies[1].Cut()
	eventually.True(t, "the store tries the server seldom", func() bool {
		state, err := r.s.Inspect(t.Context(), "stock")
		return err == nil && state.Nodes[1].Outcome == store.Unreachable && r.proxies[1].Stats().Refused > 6
	})
	g := r.rejoin()
	r.proxies[1].Pass()
	r.asks(r.servers[1], g)
	nothingLeft(t, r.servers)
}

// A server without other waiters gives no place at first, and gives one as soon as the
// client waits.
func TestRejoinWithoutWaitersAtOneServer(t *testing.T) {
	r := newTurn(t)
	r.servers[1].Text(t, "DEL", "{stock}:line", "{stock}:waits", "{stock}:place:"+r.first.Owner)
	g := r.rejoin()
	eventually.True(t, "the lock is free there", func() bool { return r.servers[1].Deleted(t, "stock") })
	if placed(t, r.servers[1], r.next) {
		t.Error("a server without waiters has made a place")
	}
	r.asks(r.servers[1], g)
	nothingLeft(t, r.servers)
}

// A release that queues again is sent again to the server whose connection breaks. A majority
// has answered, so no caller waits for it. The place is not requested again until the client
// waits, and no keys are left in the end, whether the server had executed both or neither.
func TestRejoinIsSentAgain(t *testing.T) {
	t.Parallel() // it mostly waits
	for what, breaks := range map[string]struct {
		before, after func(*turn, *faultproxy.Proxy)
	}{
		"before the server has it": {
			// Only the client that returns is cut off: a waiter that cannot be notified would be taken for dead.
			before: func(r *turn, p *faultproxy.Proxy) { p.CutRequest("{stock}:gone:" + r.held.Owner) },
			after: func(r *turn, p *faultproxy.Proxy) {
				p.Await(r.t, "the rejoin is cut", func(st faultproxy.Stats) bool { return st.Cut > 0 })
			},
		},
		"before its answer": {
			before: func(_ *turn, p *faultproxy.Proxy) { p.DropReplies() },
			after: func(r *turn, p *faultproxy.Proxy) {
				p.Await(r.t, "the answer is lost", func(st faultproxy.Stats) bool { return st.Replies.Lost > 0 })
				r.placedAt(r.servers[2])
				p.Pass()
			},
		},
		"in its answer": {
			before: func(r *turn, p *faultproxy.Proxy) { p.CutReplyTo("{stock}:gone:"+r.held.Owner, 3) },
			after: func(r *turn, p *faultproxy.Proxy) {
				p.Await(r.t, "the answer is cut", func(st faultproxy.Stats) bool { return st.Cut > 0 })
			},
		},
	} {
		for name, ends := range afterwards {
			t.Run(what+", "+name, func(t *testing.T) {
				r := newTurn(t)
				breaks.before(r, r.proxies[2])
				g := r.rejoin()
				breaks.after(r, r.proxies[2])
				eventually.True(t, "the server has released the lock", func() bool {
					return !hasLock(t, r.servers[2], r.held)
				})
				if what != "before the server has it" {
					r.placedAt(r.servers...)
				} else if r.placedAt(r.servers[:2]...); placed(t, r.servers[2], r.next) {
					t.Error("the release that was sent again has made a place")
				} else if name == "comes back" {
					ends = func(r *turn, g store.Grant) { r.asks(r.servers[2], g) }
				}
				ends(r, g)
				nothingLeft(t, r.servers)
			})
		}
		t.Run(what+", given up before it is known", func(t *testing.T) {
			r := newTurn(t)
			breaks.before(r, r.proxies[2])
			g := r.rejoin()
			if err := r.s.Release(t.Context(), store.ReleaseRequest{Lease: r.next}); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("release of the place: %v, want %v", err, store.ErrNotHeld)
			}
			if what != "before its answer" {
				breaks.after(r, r.proxies[2])
			}
			r.proxies[2].Pass()
			mustRelease(t, r.other, r.first, g)
			nothingLeft(t, r.servers)
		})
	}
}

// With one server the outcome of the rejoin is unknown, so there is no place.
func TestRejoinAtOneServerIsSentAgain(t *testing.T) {
	r := newTurnOf(t, 1)
	r.proxies[0].CutReplyTo("{stock}:gone:"+r.held.Owner, 3)
	if queued, err := r.s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: r.held}, store.WaitRequest{Lease: r.next}); queued || !errors.Is(err, store.ErrAmbiguous) {
		t.Fatalf("rejoin: queued %v, %v, want an unknown outcome", queued, err)
	}
	g := grantedSoon(t, r.got)
	eventually.True(t, "the place of the rejoin is gone", func() bool { return r.servers[0].Deleted(t, "{stock}:place:"+r.next.Owner) })
	mustRelease(t, r.other, r.first, g)
	nothingLeft(t, r.servers)
}

// The place that comes with a release has the no-push flag, and the release is sent again
// to a server that did not get it.
func TestRejoinIsSentAgainWithoutPush(t *testing.T) {
	servers := redistest.StartN(t, 3, "--rename-command", "HELLO", "")
	proxies := behind(t, servers)
	s, other := open(t, addrs(proxies), patient()), open(t, addrs(proxies), patient())
	held, first, next := request("stock"), patientWaiter("stock"), patientWaiter("stock")
	takes(t, s, servers, held)
	got := waits(t.Context(), other, first)
	checkNoPush := func(r store.Lease, servers []*redistest.Server) {
		for _, server := range servers {
			place := "{stock}:place:" + r.Owner
			has(t, server, place)
			if said := server.Text(t, "GET", place); said[0] != '1' {
				t.Errorf("the place %q has no no-push flag", said)
			}
		}
	}
	checkNoPush(first, servers)
	settled(t, s)
	proxies[2].Blackhole()
	if queued, err := s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: held}, store.WaitRequest{Lease: next}); err != nil || !queued {
		t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
	}
	checkNoPush(next, servers[:2])
	proxies[2].Await(t, "the rejoin is lost", func(st faultproxy.Stats) bool { return st.Requests.Lost > 0 })
	proxies[2].Pass()
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: next}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release of the place: %v, want %v", err, store.ErrNotHeld)
	}
	mustRelease(t, other, first, grantedSoon(t, got))
	nothingLeft(t, servers)
}

// A caller whose context ends during the rejoin gets an error that says that the outcome
// is unknown, and has no place. The release reaches the servers all the same.
func TestRejoinIsCancelled(t *testing.T) {
	t.Run("before", func(t *testing.T) {
		r := newTurn(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if queued, err := r.s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: r.held}, store.WaitRequest{Lease: r.next}); queued || !errors.Is(err, context.Canceled) {
			t.Fatalf("rejoin: queued %v, %v, want true", queued, err)
		}
		state, err := r.s.Inspect(t.Context(), "stock")
		if err != nil || state.Holder.Owner != r.held.Owner || len(state.Queue) != 1 {
			t.Errorf("inspect after a rejoin that was not sent: %+v, %v, want the holder and one waiter", state, err)
		}
		mustRelease(t, r.s, r.held, store.Grant{})
		mustRelease(t, r.other, r.first, grantedSoon(t, r.got))
		nothingLeft(t, r.servers)
	})
	for what, c := range map[string]struct {
		holds func(*faultproxy.Proxy)
		await func(*turn)
	}{
		"on the way": {(*faultproxy.Proxy).HoldRequests, func(r *turn) {
			for _, p := range r.proxies {
				p.Await(r.t, "the rejoin is held", func(st faultproxy.Stats) bool { return st.Requests.Held() > 200 }) // not a PING
			}
		}},
		"before the answer": {(*faultproxy.Proxy).HoldReplies, func(r *turn) { r.placedAt(r.servers...) }},
	} {
		t.Run(what, func(t *testing.T) {
			r := newTurn(t)
			for _, p := range r.proxies {
				c.holds(p)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				queued, err := r.s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: r.held}, store.WaitRequest{Lease: r.next})
				if queued {
					err = errors.Join(errors.New("the rejoin has a place"), err)
				}
				done <- err
			}()
			c.await(r)
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) || !errors.Is(err, store.ErrAmbiguous) {
				t.Errorf("rejoin: %v, want an unknown outcome", err)
			}
			for _, p := range r.proxies {
				p.Pass()
			}
			g := grantedSoon(t, r.got)
			for _, server := range r.servers {
				eventually.True(t, "the place of the rejoin is gone", func() bool { return server.Deleted(t, "{stock}:place:"+r.next.Owner) })
			}
			if err := r.s.Release(t.Context(), store.ReleaseRequest{Lease: r.held}); !errors.Is(err, store.ErrNotHeld) {
				t.Errorf("release after the rejoin: %v, want %v", err, store.ErrNotHeld)
			}
			mustRelease(t, r.other, r.first, g)
			nothingLeft(t, r.servers)
		})
	}
}

// The connections break between the rejoin and the wait, and the place is skipped
// meanwhile. The client finds out as soon as it waits.
func TestRejoinedPlaceIsSkipped(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes), func(t *testing.T) {
			r := newTurnOf(t, nodes)
			g := r.rejoin()
			r.placedAt(r.servers...)
			for _, server := range r.servers {
				place := strings.Fields(server.Text(t, "GET", "{stock}:place:"+r.next.Owner))
				listens := func(n string) func() bool {
					return func() bool {
						return strings.HasSuffix(strings.TrimSpace(server.Text(t, "PUBSUB", "NUMSUB", place[4])), n)
					}
				}
				eventually.True(t, "the client that rejoined is subscribed", listens("1"))
				server.Text(t, "CLIENT", "KILL", "ID", firstConnection(t, server))
				eventually.True(t, "no client is subscribed", listens("0"))
			}
			mustRelease(t, r.other, r.first, g)
			for _, server := range r.servers {
				eventually.True(t, "the place is skipped", func() bool { return server.Text(t, "EXISTS", "stock", "{stock}:line") == "0" })
			}
			eventually.True(t, "the store finds the lock free", func() bool {
				state, err := r.s.Inspect(t.Context(), "stock")
				return err == nil && !slices.ContainsFunc(state.Nodes, func(n store.NodeOutcome) bool { return n.Outcome != store.Absent })
			})
			done := waits(t.Context(), r.s, r.next)
			mustRelease(t, r.s, r.next, grantedSoon(t, done))
			nothingLeft(t, r.servers)
		})
	}
}

// firstConnection returns the id of the oldest connection of a store.
func firstConnection(t *testing.T, server *redistest.Server) string {
	for line := range strings.Lines(server.Text(t, "CLIENT", "LIST", "TYPE", "pubsub")) {
		if strings.Contains(line, "name=leasehold") {
			id, _, _ := strings.Cut(line, " ")
			return strings.TrimPrefix(id, "id=")
		}
	}
	t.Fatal("no store is connected")
	panic("unreachable")
}

// A server that has forgotten the scripts gets them again, with a rejoin in flight, and
// the calls behind it stay behind it.
func TestRejoinWhenScriptsAreFlushed(t *testing.T) {
	for name, ends := range afterwards {
		t.Run(name, func(t *testing.T) {
			r := newTurn(t)
			r.proxies[2].HoldRequests()
			r.servers[2].Text(t, "SCRIPT", "FLUSH")
			g := r.rejoin()
			ends(r, g)
			if has := r.servers[2].Text(t, "GET", "stock"); has == "(nil)" {
				t.Error("the rejoin has reached the server whose requests are held")
			}
			r.proxies[2].Release()
			r.proxies[2].Pass()
			nothingLeft(t, r.servers)
		})
	}
}
