package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// askAgain makes a waiting attempt ask a node. If it has asked as often as it may, it
// gets no answer any more.
func (a *attempts) askAgain(s *slot, c *cell, stand bool) {
	if c.queue.lost = int(c.queue.asks) >= a.m.Asks; !c.queue.lost {
		c.acquire = message{stage: asked}
		c.queue.sent, c.queue.stand = s.age, stand
		if a.m.Asks < unlimited {
			c.queue.asks++
		}
	}
}

// owners are the names of attempts among each other, by slot plus one.
var owners = [maxSlots + 1]string{"", "1", "2", "3", "4"}

// inQueue completes the event of an answer to an ACQUIRE, as drivers do.
func (a *attempts) inQueue(s *slot, q *queue, e quorum.Event) quorum.Event {
	if e.Kind != quorum.Yes && q.holder != 0 {
		e.Holder, e.ExpiresIn, e.Senior = owners[q.holder], ticks(int(q.lasts)), q.senior
	}
	e.RetryAfter = ticks(a.m.TTL) // it is asked again before that
	if q.behind {
		return a.returned(s, q, e)
	}
	return e
}

// hearInQueue passes the answer of a node to a waiting attempt.
func (a *attempts) hearInQueue(st *state, s *slot, mv move) {
	e := quorum.Event{Kind: quorum.PushLost, Node: int(mv.node)}
	if mv.kind == hearPush {
		q := &s.cells[mv.node].queue
		p := q.pushes[mv.arg]
		e = quorum.Event{Kind: quorum.PushGranted, Node: int(mv.node), Token: a.m.number(p.token), From: at(p.stamp - 1)}
		if a.m.CountFromPush {
			e.From = at(s.age)
		}
		if !mv.twice {
			q.pushes[mv.arg] = push{}
		}
	}
	a.stepAsking(st, s, e)
}

// follow makes an attempt take the place of one that gave way, or come last, or first.
func (a *attempts) follow(st *state, s *slot, first bool) {
	for i := range a.m.Attempts {
		before := &st.slots[i]
		if !before.gaveWay {
			continue
		}
		before.gaveWay, before.unclaimed = false, false
		s.rank, s.machine = before.rank, fresh+1
		for n := range a.m.Nodes {
			s.cells[n].queue.stand = true
		}
		return
	}
	a.enter(st, s, first)
}

// enter gives an attempt its rank: the last, or the first.
func (a *attempts) enter(st *state, s *slot, first bool) {
	for i := range a.m.Attempts {
		switch other := &st.slots[i]; {
		case other == s || other.life == unused:
		case first:
			other.rank++
		default:
			s.rank = max(s.rank, other.rank+1)
		}
	}
}
