package stories

import "strconv"

var setnxExpire = Story{
	Name:  "setnx-expire",
	Title: "SETNX, then EXPIRE: the holder dies between the two",
	Summary: `So the key gets a TTL, by a second command. If the client, its connection or the
server fails between the two, the key is there without one.`,
	Weak: Part{
		Design: "SETNX to lock, then EXPIRE, so that the lock ends if its holder does.",
		play:   deadlock(" before it sends EXPIRE lock 10"),
	},
	Ours: []Part{{
		Design: "Leasehold: key, TTL and token are one atomic step on the server. The client is killed before it even hears the answer.",
		play: func(s *stage) ending {
			server := s.server()
			net := s.network(server.Addr())
			a, b := s.enter("A").open(s.url(net.Addr())), s.enter("B").open(s.url(server.Addr()))
			net.HoldReplies()
			s.happens("network", "holds back what the server answers to A")
			a.begin(a.asking(terms{}))
			s.soon("A's key", func() bool { return s.asks(server, "EXISTS", lock) == "1" })
			a.says("asks for the lock; the server grants it, A does not know yet")
			a.dies("")
			left, err := strconv.Atoi(s.asks(server, "PTTL", lock))
			s.check(err)
			s.does("server", "PTTL lock -> %d", left)
			if left == -1 {
				return ending{Broken, "the key has no TTL."}
			}
			b.says("waits")
			b.gets(terms{})
			return ending{Held, "there is no moment at which the key has no TTL. When it was over, B got the lock."}
		},
	}},
}
