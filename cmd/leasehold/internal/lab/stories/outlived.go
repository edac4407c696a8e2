package stories

import "time"

var outlived = Story{
	Name:  "outlived",
	Title: "The work takes longer than the TTL",
	Summary: `Nobody can tell beforehand how long the work will take. When the TTL is over the
lock is free, finished or not, and another client starts.`,
	Weak: Part{
		Design: "SET NX PX with a TTL that should be long enough, and no renewal.",
		play: func(s *stage) ending {
			server := s.server()
			a, b := s.enter("A"), s.enter("B")
			a.redis(server.Addr(), "SET", lock, "A", "NX", "PX", millis(s.ttl/2))
			a.says("works")
			s.expired(server)
			if b.redis(server.Addr(), "SET", lock, "B", "NX", "PX", millis(long)) != "OK" {
				return ending{Held, "B did not get the lock."}
			}
			b.says("works")
			a.says("still works")
			return ending{Failed, "A and B work at the same time."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold: the lease is renewed every third of its TTL while its holder lives.",
		play: func(s *stage) ending {
			url := s.url(s.server().Addr())
			a, b := s.enter("A").open(url), s.enter("B").open(url)
			a.gets(terms{})
			a.says("works, for three times the TTL of %v", s.ttl)
			return s.keeps(a, b, 3*s.ttl, "A had the lock for as long as it worked, and B when A was done.")
		},
	}},
}

// keeps is the end of a play in which a is to keep the lock for d although b
// asks for it all the time, and b is to get it then.
func (s *stage) keeps(a, b *actor, d time.Duration, words string) ending {
	for end := time.Now().Add(d); time.Now().Before(end); s.pause(s.ttl*2/5, "A's work") {
		_, in := b.tries(terms{})
		if still, why := a.holds(); !still {
			a.says("has lost it: %s", why)
			s.quickly(false) // it could not renew in time
		}
		if in {
			return ending{Broken, "B got the lock while A could trust its lease."}
		}
	}
	if why := a.releases(); why != "" {
		s.fail("A cannot release the lock: %s", why)
	}
	a.says("is done, and releases the lock")
	b.gets(terms{})
	return ending{Held, words}
}
