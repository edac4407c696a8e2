package stories

var sessionLost = Story{
	Name:  "session-lost",
	Title: "A ZooKeeper session is lost in a pause",
	Summary: `ZooKeeper ends the session of a client that it does not hear from, and with it the
client's locks. If the client was only paused, say by garbage collection, it does not
notice before its next contact with a server, and may work on until then.`,
	Weak: Part{
		Design: "go-zookeeper's Lock, and a resource that accepts every write.",
		play: func(s *stage) ending {
			url := s.zookeeper()
			r := s.resource(false)
			a, b := s.enter("A"), s.enter("B")
			a.locks(url, "go-zookeeper", s.ttl)
			a.stands("")
			b.says("waits")
			b.locks(url, "go-zookeeper", long)
			s.explain("A's session is over: B would not have the lock otherwise.")
			b.writes(r, 0)
			a.goesOn()
			return writesOver(a, r, "A has written over B's work, while B has the lock.")
		},
	},
	Ours: []Part{{
		Design: "Leasehold in the same ZooKeeper: it cannot stop a paused process either, but its locks have tokens, and the resource checks them.",
		play:   func(s *stage) ending { return lateAfterPause(s, s.zookeeper()) },
	}},
}
