package stories

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
)

var delayedPacket = Story{
	Name:  "delayed-packet",
	Title: "A write is delayed in the network until its lock is over",
	Summary: `The holder sends its write in time, and the network delivers it a minute later, as
networks have done. By then the lock is over and somebody else's. To the resource
it looks like any other write.`,
	Weak: Part{
		Design: "SET NX PX, and a resource that accepts every write.",
		play: func(s *stage) ending {
			server := s.server()
			r := s.resource(false)
			net := s.network(r.addr)
			a, b := s.enter("A"), s.enter("B")
			a.redis(server.Addr(), "SET", lock, "A", "NX", "PX", millis(s.ttl/2))
			sentAndHeld(s, net, a, 0)
			s.expired(server)
			b.redis(server.Addr(), "SET", lock, "B", "NX", "PX", millis(long))
			b.writes(r, 0)
			net.Pass()
			s.happens("network", "delivers A's write")
			a.must(a.report())
			if r.has() != "written by A" {
				return ending{Held, "A's write was refused."}
			}
			return ending{Failed, "A's write of long ago has replaced B's, while B has the lock."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold: a live holder keeps its lease while it waits for an answer. So the holder dies, and its write is delivered later. The resource checks tokens.",
		play: func(s *stage) ending {
			server := s.server()
			r := s.resource(true)
			net := s.network(r.addr)
			a, b := s.enter("A").open(s.url(server.Addr())), s.enter("B").open(s.url(server.Addr()))
			first := a.gets(terms{})
			sentAndHeld(s, net, a, first)
			a.dies(" while it waits for the answer")
			b.says("waits")
			second := b.gets(terms{ttl: long})
			if !b.writes(r, second) {
				return ending{Broken, "the resource refused the newer holder."}
			}
			net.Pass()
			s.happens("network", "delivers A's write")
			s.until("A's write", func() bool { return r.arrived(first) })
			if r.has() != "written by B" {
				return ending{Broken, "A's write of long ago has replaced B's."}
			}
			return ending{Guarded, "no lock can call back what is under way. The resource refused its token, and B's work stands."}
		},
	}},
}

// sentAndHeld has a write over a network that keeps it.
func sentAndHeld(s *stage, net *faultproxy.Proxy, a *actor, token fence.Token) {
	net.HoldRequests()
	a.begin(a.writing("http://"+net.Addr(), token))
	s.until("the write", func() bool { return net.Stats().Requests.Held() > 0 })
	a.says("writes, while it has the lock")
	s.happens("network", "holds A's write back")
}
