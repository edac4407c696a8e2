package stories

import "time"

var pauseAfter = Story{
	Name:  "pause-after",
	Title: "The client is paused after its check, before its write",
	Summary: `Client 1 has the lock, has even checked that it is still valid, and is paused
before it writes. The TTL ends, client 2 gets the lock and writes. Client 1 wakes
up and does what it was about to do. No lock service can prevent that, whatever it
is built on. The resource can, if it checks a fencing token.`,
	Weak: Part{
		Design: "SET NX PX, with a look at the clock before the write.",
		play: func(s *stage) ending {
			server := s.server()
			r := s.resource(false)
			a, b := s.enter("A"), s.enter("B")
			ask := []string{"SET", lock, "A", "NX", "PX", millis(s.ttl)}
			answer := a.do(order{Do: plain, Addr: server.Addr(), Args: ask})
			a.answered(ask, answer)
			s.quickly(answer.Took < s.ttl/2 && s.asks(server, "GET", lock) == "A")
			a.says("looks at its clock: the lock is %v old and valid", answer.Took.Round(100*time.Microsecond))
			a.stands("")
			s.expired(server)
			b.redis(server.Addr(), "SET", lock, "B", "NX", "PX", millis(long))
			b.writes(r, 0)
			a.goesOn()
			return writesOver(a, r, "A has written over B's work, while B has the lock.")
		},
	},
	Ours: []Part{{
		Design: "Leasehold: it cannot stop a paused process either, but the resource can check its token.",
		play: func(s *stage) ending {
			return lateAfterPause(s, s.url(s.server().Addr()))
		},
	}},
}

// writesOver is the end of a play in which B has the lock and has written. The actor a, who
// is A, writes to the same resource without a token.
func writesOver(a *actor, r *resource, failure string) ending {
	if !a.writes(r, 0) || r.has() != "written by A" {
		return ending{Held, "A's write was refused."}
	}
	return ending{Failed, failure}
}

// lateAfterPause is a play in which a holder is stopped after it has looked at its lease,
// and writes when another client has the lock.
func lateAfterPause(s *stage, url string) ending {
	r := s.resource(true)
	a, b := s.enter("A").open(url), s.enter("B").open(url)
	first := a.gets(terms{})
	valid, _ := a.holds()
	s.quickly(valid)
	a.says("looks at its lease: it is valid")
	a.stands("")
	b.says("waits")
	second := b.gets(terms{ttl: long})
	if !b.writes(r, second) {
		return ending{Broken, "the resource refused the newer holder."}
	}
	a.goesOn()
	if a.writes(r, first) {
		return ending{Broken, "the resource took what A wrote late."}
	}
	if still, _ := a.holds(); still {
		return ending{Broken, "A still trusts its lease."}
	}
	a.says("looks again: its lease is lost")
	return ending{Guarded, "A could not be kept from writing. The resource refused the older token, and A knows now."}
}
