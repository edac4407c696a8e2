package stories

import (
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

var pauseBefore = Story{
	Name:  "pause-before",
	Title: "The client is paused while the answer is on its way",
	Summary: `Client 1 asks for the lock. While the answer is in its kernel's buffer the process
is paused, say by garbage collection, for longer than the TTL. Client 2 gets the lock.
Client 1 wakes up, reads "OK", and believes that it has the lock. Redlock's third
step is there for this: compare the time it took with the TTL.`,
	Weak: Part{
		Design: "SET NX PX without the third step: a client that reads OK has the lock.",
		play: func(s *stage) ending {
			server := s.server()
			net := s.network(server.Addr())
			r := s.resource(false)
			a, b := s.enter("A"), s.enter("B")
			ask := []string{"SET", lock, "A", "NX", "PX", millis(s.ttl)}
			pausedInFlight(s, server, net, a, order{Do: plain, Addr: net.Addr(), Args: ask})
			b.redis(server.Addr(), "SET", lock, "B", "NX", "PX", millis(long))
			b.writes(r, 0)
			a.goesOn()
			if a.answered(ask, a.report()) != "OK" {
				s.quickly(false)
			}
			a.writes(r, 0)
			if s.asks(server, "GET", lock) != "B" || r.has() == "written by B" {
				return ending{Held, "A did not write while B had the lock."}
			}
			return ending{Failed, "A believes that it has the lock, which is B's, and has written over B's work."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold: validity counts from before the request was sent. An answer that comes too late is no lease.",
		play: func(s *stage) ending {
			server := s.server()
			net := s.network(server.Addr())
			a := s.enter("A").open(s.url(net.Addr()))
			b := s.enter("B").open(s.url(server.Addr()))
			pausedInFlight(s, server, net, a, a.asking(terms{}))
			b.gets(terms{ttl: long})
			a.goesOn()
			if _, in := a.asked(a.report()); in {
				return ending{Broken, "A took the late answer for a lease."}
			}
			if still, why := b.holds(); !still {
				return ending{Broken, "B's lease is gone: " + why}
			}
			if _, in := s.enter("C").open(s.url(server.Addr())).tries(terms{}); in {
				return ending{Broken, "what A gave back was B's lock."}
			}
			return ending{Held, "A knows that it does not have the lock, and B has it undisturbed."}
		},
	}},
}

// pausedInFlight has a ask for the lock and stops it before it can read the
// answer, which has come when it goes on; the lock has expired meanwhile.
func pausedInFlight(s *stage, server *localredis.Server, net *faultproxy.Proxy, a *actor, ask order) {
	net.HoldReplies()
	a.begin(ask)
	s.soon("the grant", func() bool {
		return s.asks(server, "EXISTS", lock) == "1" && net.Stats().Replies.Held() > 0
	})
	a.says("asks for the lock; the server grants it, the answer is on its way")
	a.stands("")
	net.Pass()
	s.expired(server)
}
