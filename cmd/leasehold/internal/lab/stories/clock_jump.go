package stories

import (
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

var clockJump = Story{
	Name:  "clock-jump",
	Title: "A node's clock jumps, and with it the end of a lock",
	Summary: `Client 1 has the lock on nodes 1, 2 and 3 of five; it cannot reach 4 and 5. The clock
of node 3 is set ahead, by hand or by a time service, and the lock ends there.
Client 2 cannot reach 1 and 2, and gets it on 3, 4 and 5. Both have a majority.
(The nodes are modelled, because the clock of a real server cannot be set without
setting this machine's. A test compares the model with real servers.)`,
	Weak: Part{
		Design: "Redlock over five modelled nodes.",
		play: func(s *stage) ending {
			nodes := modelNodes(5)
			redlock := func(client string, reachable []*modelNode) bool {
				got := 0
				for _, n := range reachable {
					if n.setNX(client, long) {
						got++
					}
				}
				s.does(client, "SET lock %s NX PX %s on nodes %d to %d -> has %d of 5", client, millis(long),
					reachable[0].number, reachable[len(reachable)-1].number, got)
				return got >= 3
			}
			if !redlock("A", nodes[:3]) {
				s.fail("A did not get a free lock")
			}
			s.jump(nodes[2])
			if !redlock("B", nodes[2:]) {
				return ending{Held, "B did not get the lock."}
			}
			return ending{Failed, "A and B both have the lock, each from a majority."}
		},
	},
	Ours: []Part{{
		Design: "Leasehold over the same five. The client and the quorum are those that ship. The resource looks at tokens.",
		play: func(s *stage) ending {
			nodes := modelNodes(5)
			r := s.resource(true)
			client := func(name string, reachable ...int) *leasehold.Lock {
				st := newModelStore(nodes, reachable)
				s.atEnd(func() { st.Close() })
				return leasehold.New(store.New(st), nil).Mutex(lock).With(leasehold.LockOptions{TTL: long, Tries: 1, Purpose: name})
			}
			try := func(client string, l *leasehold.Lock) *leasehold.Lease {
				lease, err := l.Try(s.ctx)
				if err != nil {
					s.does(client, "asks for the lock: no (%v)", err)
					return nil
				}
				s.atEnd(func() { lease.Release(s.ctx) })
				s.does(client, "gets the lock, token %v", lease.Token())
				return lease
			}
			a := try("A", client("A", 1, 2, 3))
			if a == nil {
				s.fail("A did not get a free lock")
			}
			s.jump(nodes[2])
			b := try("B", client("B", 3, 4, 5))
			switch {
			case b == nil && a.Err() == nil:
				return ending{Held, "B did not get the lock while A had it."}
			case b == nil:
				s.fail("A has lost its lease (%v), and B did not get the lock", a.Err())
			case a.Err() != nil:
				return ending{Held, "B got the lock only after A had been notified that its lease was lost."}
			}
			s.explain("A and B both trust their leases: the lock has not held.")
			return lateWrite(func() bool { return r.write("written by B", b.Token()) }, func() bool { return r.write("written by A", a.Token()) })
		},
	}},
}

// jump sets a node's clock ahead.
func (s *stage) jump(n *modelNode) {
	const ahead = time.Hour
	n.setAhead(ahead)
	s.happens("node 3", "has its clock set ahead by %v", ahead)
}

// modelTime is the time of day that modelled nodes begin with; what passes then
// is counted without it.
var modelTime = time.Now()

func modelNow() clock.Instant { return clock.Instant(modelTime.UnixNano()).Add(time.Since(modelTime)) }
