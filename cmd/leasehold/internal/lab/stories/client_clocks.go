package stories

import (
	"strconv"
	"time"
)

var clientClocks = Story{
	Name:  "client-clocks",
	Title: "SETNX and GETSET with clients' clocks, one of them fast",
	Summary: `In an old recipe the holder writes into the key when its lock ends, by its own
clock. A client that finds that time past takes the lock with GETSET. This works
only as long as all clocks agree.`,
	Weak: Part{
		Design: "SETNX lock <when it ends>; if that time is past, GETSET lock <new end>; the client that gets the old value back has the lock.",
		play: func(s *stage) ending {
			const fast = 5 * time.Minute
			server := s.server()
			a, b := s.enter("A"), s.enter("B")
			s.happens("B", "has a clock that is %v fast", fast)
			end := func(ahead time.Duration) string {
				return strconv.FormatInt(time.Now().Add(ahead+long).UnixMilli(), 10)
			}
			if a.redis(server.Addr(), "SETNX", lock, end(0)) != "1" {
				s.fail("A did not get a free lock")
			}
			a.says("has the lock for %v", long)
			b.redis(server.Addr(), "SETNX", lock, end(fast))
			past := func(value string) bool {
				ms, err := strconv.ParseInt(value, 10, 64)
				s.check(err)
				return time.UnixMilli(ms).Before(time.Now().Add(fast))
			}
			if !past(b.redis(server.Addr(), "GET", lock)) {
				return ending{Held, "B saw that the lock is A's."}
			}
			b.says("by its clock that time is past")
			if !past(b.redis(server.Addr(), "GETSET", lock, end(fast))) {
				return ending{Held, "B saw that the lock is A's."}
			}
			b.says("has the lock")
			return ending{Failed, "A and B both have the lock, because B's clock is fast."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold: no client's clock reaches the server. It is told how long a lease lasts, and counts by itself. (B's clock is fast as the library reads it; the machine's is not touched.)",
		play: func(s *stage) ending {
			const fast = 5 * time.Minute
			url := s.url(s.server().Addr())
			a, b := s.enter("A").open(url), s.enter("B")
			s.happens("B", "has a clock that is %v fast", fast)
			b.must(b.do(order{Do: open, Store: url, Ahead: fast}))
			first := a.gets(terms{ttl: long})
			if _, in := b.tries(terms{}); in {
				return ending{Broken, "B got the lock, while A has it."}
			}
			if still, why := a.holds(); !still {
				return ending{Broken, "A's lease is gone: " + why}
			}
			if why := a.releases(); why != "" {
				s.fail("A cannot release the lock: %s", why)
			}
			a.says("releases the lock")
			if b.gets(terms{ttl: long}) <= first {
				return ending{Broken, "the later grant does not have the larger token."}
			}
			return ending{Held, "B got the lock when A gave it back, and not before."}
		},
	}},
}
