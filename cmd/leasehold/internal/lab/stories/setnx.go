package stories

var setnx = Story{
	Name:  "setnx",
	Title: "SETNX without a TTL: a dead holder keeps the lock for ever",
	Summary: `The simplest lock is a key that only one client can create. If that client dies
before it deletes the key, nobody else ever gets the lock.`,
	Weak: Part{
		Design: "SETNX to lock, DEL to unlock.",
		play:   deadlock(" at work"),
	},
	Ours: []Part{{
		Design: "Leasehold: the lock has a TTL, which a live holder renews.",
		play: func(s *stage) ending {
			url := s.url(s.server().Addr())
			a, b := s.enter("A").open(url), s.enter("B").open(url)
			first := a.gets(terms{})
			a.dies(" at work")
			b.tries(terms{})
			b.says("waits")
			if b.gets(terms{}) <= first {
				return ending{Broken, "the later grant does not have the larger token."}
			}
			return ending{Held, "when A's TTL was over, B got the lock, with a larger token."}
		},
	}},
}

// deadlock is a play in which the holder of SETNX dies, and another client asks
// for the lock.
func deadlock(when string) func(*stage) ending {
	return func(s *stage) ending {
		server := s.server()
		a, b := s.enter("A"), s.enter("B")
		a.redis(server.Addr(), "SETNX", lock, "A")
		a.dies(when)
		for range 3 {
			if b.redis(server.Addr(), "SETNX", lock, "B") == "1" {
				return ending{Held, "B got the lock."}
			}
			s.pause(s.ttl/4, "the next attempt")
		}
		if left := b.redis(server.Addr(), "PTTL", lock); left != "-1" {
			return ending{Held, "the lock will be free in " + left + " ms."}
		}
		return ending{Failed, "a deadlock. Its holder is dead, and -1 means that the key has no TTL: it stays for ever."}
	}
}
