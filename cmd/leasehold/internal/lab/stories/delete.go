package stories

var deleteAnybody = Story{
	Name:  "delete",
	Title: "DEL without looking deletes somebody else's lock",
	Summary: `Client 1 works for longer than the TTL, and client 2 gets the lock. When client 1
is done it deletes the key, which is client 2's by now, and client 3 gets in.`,
	Weak: Part{
		Design: "SET NX PX to lock, DEL to unlock.",
		play: func(s *stage) ending {
			server := s.server()
			a, b, c := s.enter("A"), s.enter("B"), s.enter("C")
			a.redis(server.Addr(), "SET", lock, "A", "NX", "PX", millis(s.ttl/2))
			a.says("works for longer than that")
			s.expired(server)
			b.redis(server.Addr(), "SET", lock, "B", "NX", "PX", millis(long))
			a.says("is done")
			a.redis(server.Addr(), "DEL", lock)
			if c.redis(server.Addr(), "SET", lock, "C", "NX", "PX", millis(long)) != "OK" {
				return ending{Held, "C did not get the lock."}
			}
			return ending{Failed, "B and C are both in. A has deleted B's lock."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold: every attempt has an owner value of its own, and releasing compares it, on the server, in one step. (Renewal is switched off, or it would not come to this.)",
		play: func(s *stage) ending {
			server := s.server()
			a, b, c := s.enter("A").open(s.url(server.Addr())), s.enter("B").open(s.url(server.Addr())), s.enter("C").open(s.url(server.Addr()))
			a.gets(terms{ttl: s.ttl / 2, noRenew: true})
			a.says("works for longer than that")
			s.expired(server)
			b.gets(terms{ttl: long})
			a.says("is done, and releases: %s", a.releases())
			if _, in := c.tries(terms{}); in {
				return ending{Broken, "C got the lock, while B has it."}
			}
			if still, why := b.holds(); !still {
				return ending{Broken, "B's lease is gone: " + why}
			}
			return ending{Held, "B still has its lock, and A was notified that its own lease was lost."}
		},
	}},
}
