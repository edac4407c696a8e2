package stories

import (
	"net"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

var failover = Story{
	Name:  "failover",
	Title: "The master dies before its replica knows of the lock",
	Summary: `Client A gets the lock from the master. The master dies before the write has
reached the replica; the replica is promoted, knows nothing of the lock, and
client B gets it too.`,
	Weak: Part{
		Design: "SET NX PX on a master, with a replica that takes over.",
		play: func(s *stage) ending {
			master, replica, promote := replicated(s)
			a, b := s.enter("A"), s.enter("B")
			a.redis(master.Addr(), "SET", lock, "A", "NX", "PX", millis(long))
			promote()
			if b.redis(replica.Addr(), "SET", lock, "B", "NX", "PX", millis(long)) != "OK" {
				return ending{Held, "B did not get the lock."}
			}
			return ending{Failed, "A and B both have the lock."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold over three independent servers: there is no failover, and a majority remembers.",
		play: func(s *stage) ending {
			nodes := s.servers(3)
			url := s.url(nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr())
			a, b := s.enter("A").open(url), s.enter("B").open(url)
			a.getsOnAll(nodes, terms{})
			nodes[0].Kill()
			s.happens("node 1", "dies (SIGKILL), and stays dead")
			return s.keeps(a, b, 2*s.ttl, "A kept the lock for two TTLs with one server dead, and B got it from the others when A was done.")
		},
	}, {
		Design: "Leasehold over a master with a replica, against advice: no client can know that the replica forgot. The resource looks at tokens.",
		play: func(s *stage) ending {
			master, replica, promote := replicated(s)
			r := s.resource(true)
			a, b := s.enter("A").open(s.url(master.Addr())), s.enter("B").open(s.url(replica.Addr()))
			first := a.gets(terms{ttl: long})
			promote()
			second, in := b.tries(terms{ttl: long, wait: 2 * s.ttl})
			if !in {
				return ending{Held, "B did not get the lock, which A has."}
			}
			return afterSecond(s, r, a, first, b, second)
		},
	}},
}

// replicated is a master and its replica, over a network that is about to hold
// back what the replica should hear. promote ends the master, and makes the
// replica one.
func replicated(s *stage) (master, replica *localredis.Server, promote func()) {
	master = s.server("--repl-diskless-sync-delay", "0")
	link := s.network(master.Addr())
	replica = s.server()
	host, port, err := net.SplitHostPort(link.Addr())
	s.check(err)
	s.asks(replica, "REPLICAOF", host, port)
	s.asks(master, "SET", "mark", "here")
	s.until("the replica to follow", func() bool { return s.asks(replica, "GET", "mark") == "here" })
	s.does("replica", "follows the master: what is written there is here at once")
	link.HoldReplies()
	s.happens("network", "is slow between master and replica")
	return master, replica, func() {
		master.Kill()
		link.Close()
		s.happens("master", "dies (SIGKILL)")
		s.asks(replica, "REPLICAOF", "NO", "ONE")
		s.does("replica", "REPLICAOF NO ONE: is the master now")
	}
}

// afterSecond is the end of a play in which b has been granted the lock that a
// has had, and may still trust.
func afterSecond(s *stage, r *resource, a *actor, first fence.Token, b *actor, second fence.Token) ending {
	if still, why := a.holds(); !still {
		a.says("is notified: %s", why)
		return ending{Held, "B got the lock only after A had been notified that its lease was lost."}
	}
	s.explain("A and B both trust their leases: the lock has not held.")
	return lateWrite(func() bool { return b.writes(r, second) }, func() bool { return a.writes(r, first) })
}

// lateWrite is the end of a play in which two trust their leases: the newer one
// writes, then the older one.
func lateWrite(newer, older func() bool) ending {
	if !newer() {
		return ending{Broken, "both had the lock, and the resource refused the newer holder."}
	}
	if older() {
		return ending{Broken, "both had the lock, and the resource took what the older holder wrote late."}
	}
	return ending{Guarded, "remains open: both had the lock. The fencing token caught it: the resource refused A's late write."}
}
