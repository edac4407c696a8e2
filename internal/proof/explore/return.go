package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// In a world with Returns, a client that releases may want the lock again at once. The
// release then also takes a place in the queue for the client's next attempt, in one
// message to each node, which does both in one step. Nobody waits for that attempt yet.
// Until the client claims it, it gets the messages of nodes but no timers. It cannot be
// claimed before the release has its verdict. It may be given up at any time; if it was
// won meanwhile, that is a release.

// rejoin makes a client release, with a place for its next attempt.
func (a *attempts) rejoin(st *state, mv move) {
	old, s := &st.slots[mv.arg>>1], &st.slots[mv.slot]
	*s = slot{life: asking, unclaimed: true, machine: fresh + 1} // which has asked for places only
	a.enter(st, s, mv.arg&1 == 1)
	a.leases.release(old)
	for n := range a.m.Nodes {
		from, c := &old.cells[n], &s.cells[n]
		c.acquire = message{stage: asked}
		c.queue = queue{stand: true, behind: true, asks: uint8(min(a.m.Asks, 1)), comes: mv.arg>>1 + 1, renewed: from.queue.always}
		from.bury, from.queue.always = false, false
	}
	a.actions[Returned]++
}

// returned completes the first answer to an attempt that was begun with a release, as
// the driver does: a node with a free lock gave it no place.
func (a *attempts) returned(s *slot, q *queue, e quorum.Event) quorum.Event {
	if q.behind = false; e.Kind != quorum.Absent {
		return e
	}
	e.Kind, e.RetryAfter = quorum.Unsent, time.Millisecond
	if s.unclaimed {
		q.none, e.RetryAfter = true, ticks(a.m.TTL)
	}
	return e
}

// claim makes the client wait for an attempt. It asks the nodes again that gave it no
// place because the lock was free.
func (a *attempts) claim(st *state, s *slot) {
	s.unclaimed = false
	for n := range a.m.Nodes {
		if q := &s.cells[n].queue; q.none && s.life == asking {
			q.none = false
			a.stepAsking(st, s, quorum.Event{Kind: quorum.PushLost, Node: n})
		}
	}
	a.actions[Claimed]++
}

// cancel gives up an attempt, whether it was claimed or not.
func (a *attempts) cancel(st *state, s *slot) {
	if s.unclaimed {
		a.actions[Dropped]++
	}
	if s.life == over {
		s.gaveWay, s.unclaimed = false, false
		return
	}
	a.stepAsking(st, s, quorum.Event{Kind: quorum.Cancel})
}
