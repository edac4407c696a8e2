package stories

var crash = Story{
	Name:  "crash",
	Title: "A node forgets in a crash, and makes a second majority",
	Summary: `Redlock over servers without persistence. A client has the lock on a majority of
them; one of these crashes and comes back empty; together with those that were
not part of the majority it gives the lock to somebody else. The specification's
remedy: a crashed node stays out for longer than the longest TTL.`,
	Weak: Part{
		Design: "Redlock on three servers without persistence, and without delayed restarts.",
		play: func(s *stage) ending {
			nodes := s.servers(3)
			cut := s.network(nodes[2].Addr())
			cut.RefuseNew()
			a, b := s.enter("A"), s.enter("B")
			s.happens("network", "node 3 cannot be reached from A")
			redlock := func(c *actor, addrs ...string) bool {
				got := 0
				for i, addr := range addrs {
					c.says("asks node %d", i+1)
					if c.redis(addr, "SET", lock, c.name, "NX", "PX", millis(long)) == "OK" {
						got++
					}
				}
				c.says("has %d of 3", got)
				return got >= 2
			}
			if !redlock(a, nodes[0].Addr(), nodes[1].Addr(), cut.Addr()) {
				s.fail("A did not get a free lock")
			}
			s.check(nodes[1].Restart())
			s.happens("node 2", "crashes (SIGKILL), and comes back empty")
			if !redlock(b, nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr()) {
				return ending{Held, "B did not get the lock."}
			}
			return ending{Failed, "A and B both have the lock, each from a majority."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold on the same three servers. The resource looks at tokens.",
		play: func(s *stage) ending {
			nodes := s.servers(3)
			cut := s.network(nodes[2].Addr())
			cut.RefuseNew()
			s.happens("network", "node 3 cannot be reached from A")
			r := s.resource(true)
			url := s.url(nodes[0].Addr(), nodes[1].Addr(), nodes[2].Addr())
			a, b := s.enter("A"), s.enter("B").open(url)
			a.must(a.do(order{Do: open, Store: url, Far: nodes[2].Addr(), Via: cut.Addr()}))
			first := a.gets(terms{})
			s.check(nodes[1].Restart())
			s.happens("node 2", "crashes (SIGKILL), and comes back empty")
			for {
				if second, in := b.tries(terms{}); in {
					return afterSecond(s, r, a, first, b, second)
				}
				if still, why := a.holds(); !still {
					a.says("is notified: %s", why)
					b.gets(terms{})
					return ending{Held, "B got the lock only after A had been notified that its lease was lost."}
				}
				s.pause(s.ttl/4, "A's lease")
			}
		},
	}},
}
