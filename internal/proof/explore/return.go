package explore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// In a world with Returns, a client that releases may want the lock again at once. The
// release then also takes a place in the queue for the client's next attempt, in one
// message to each node, which does both in one step. Nobody waits for that attempt yet.
// Until the client claims it, it gets the messages of nodes but no timers. It cannot be
// claimed before the release has its verdict. It may be given up at any time; if it was
// won meanwhile, that is a release.

// returnMoves are the releases that begin an attempt in slot free, if one more than
// the active ones may be.
func (w *walker) returnMoves(st *state, free uint8, active int, out []move) []move {
	for i := range uint8(w.m.Attempts) {
		s := &st.slots[i]
		others := active
		switch {
		case s.life == holding && w.valid(s):
			others--
		case s.life != holding && (s.life != over || s.released):
			continue
		}
		if others >= w.m.Clients {
			continue
		}
		out = append(out, move{kind: comeBack, slot: free, arg: i << 1})
		if w.m.AnyRank {
			out = append(out, move{kind: comeBack, slot: free, arg: i<<1 | 1})
		}
	}
	return out
}

// mayReturn says whether there is room for an attempt that begins with a release.
func (w *walker) mayReturn(st *state) bool {
	return w.m.Returns && st.slots[w.m.Attempts-1].life == unused
}

// comeBack makes a client release, with a place for its next attempt.
func (w *walker) comeBack(st *state, mv move) {
	old, s := &st.slots[mv.arg>>1], &st.slots[mv.slot]
	*s = slot{life: asking, unclaimed: true, machine: fresh + 1} // which has asked for places only
	w.enter(st, s, mv.arg&1 == 1)
	w.giveBack(old)
	for n := range w.m.Nodes {
		from, c := &old.cells[n], &s.cells[n]
		c.acquire = message{stage: asked}
		c.line = queue{stand: true, behind: true, asks: uint8(min(w.m.Asks, 1)), comes: mv.arg>>1 + 1, renewed: from.line.always}
		from.bury, from.line.always = false, false
	}
	w.actions[Returned]++
}

// arrivals are the steps of such a message that arrives.
func (w *walker) arrivals(st *state, i, n uint8, out []move) []move {
	from := len(out)
	out = w.releases(st, deliverReturn, st.slots[i].cells[n].line.comes-1, n, out)
	for k := from; k < len(out); k++ {
		out[k].slot = i
	}
	return out
}

// deliverReturn makes a node execute a release together with the ACQUIRE of the next
// attempt.
func (w *walker) deliverReturn(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	owner := c.line.comes
	old := &st.slots[owner-1].cells[mv.node]
	before := w.lock(st, mv.node)
	end := old.line.ending(mv, owner)
	end.Tomb, end.Renewed = ticks(w.m.TTL), c.line.renewed || w.heals()
	next := modelnode.Ask[uint8]{Owner: mv.slot + 1, TTL: ticks(w.m.TTL), Ticket: uint64(s.rank), Behind: true}
	after, ended, a := before.Return(w.m.Rules, end, next, nodeNow(st, mv.node))

	old.freed = w.m.Check&Orphans != 0
	old.release = old.release || w.reducesInQueue() && old.acquiring()
	w.checkFreed(&after, owner)
	w.checkLine(st, mv.node, &before, &after)
	w.keep(st, mv.node, after)
	w.push(st, mv.node, ended.Pushes)
	st.skips -= min(st.skips, mv.arg&0xf, 1)
	if a.Position > 0 {
		w.actions[Placed]++
	} else {
		w.actions[Bare]++
	}
	c.deliveredInLine(mv, saying(a), &a, 0, a.Holder != 0 && st.before(a.Holder-1, mv.slot))
	w.answer = a
	w.answer.Pushes = ended.Pushes
}

// returned completes the first answer to an attempt that was begun with a release, as
// the driver does: a node with a free lock gave it no place.
func (w *walker) returned(s *slot, q *queue, e quorum.Event) quorum.Event {
	if q.behind = false; e.Kind != quorum.Absent {
		return e
	}
	e.Kind, e.RetryAfter = quorum.Unsent, time.Millisecond
	if s.unclaimed {
		q.none, e.RetryAfter = true, ticks(w.m.TTL)
	}
	return e
}

// unsent handles an ACQUIRE that never left; the release that it came with never left
// either.
func (q *queue) unsent() {
	if q.behind {
		q.comes, q.renewed = 0, false
	}
}

// standing reports whether the release that began an attempt may have its verdict.
func (w *walker) standing(s *slot) bool {
	var said quorum.Set
	for n := range w.m.Nodes {
		if !s.cells[n].line.behind {
			said |= quorum.SetOf(n)
		}
	}
	cfg := w.m.quorum()
	return cfg.HasQuorum(said)
}

// claim makes the client wait for an attempt. It asks the nodes again that gave it no
// place because the lock was free.
func (w *walker) claim(st *state, s *slot) {
	s.unclaimed = false
	for n := range w.m.Nodes {
		if q := &s.cells[n].line; q.none && s.life == asking {
			q.none = false
			w.stepAsking(st, s, quorum.Event{Kind: quorum.PushLost, Node: n})
		}
	}
	w.actions[Claimed]++
}

// cancel gives up an attempt, whether it was claimed or not.
func (w *walker) cancel(st *state, s *slot) {
	if s.unclaimed {
		w.actions[Dropped]++
	}
	if s.life == over {
		s.gaveWay, s.unclaimed = false, false
		return
	}
	w.stepAsking(st, s, quorum.Event{Kind: quorum.Cancel})
}

// awaits reports whether a release of slot i is under way with the ACQUIRE of another
// slot.
func (st *state) awaits(i uint8) bool {
	for j := range st.slots {
		for n := range st.slots[j].cells {
			if st.slots[j].cells[n].line.comes == i+1 {
				return true
			}
		}
	}
	return false
}

// Action is something that happens in a world with Returns.
type Action uint8

// The actions.
const (
	// Returned: a lease was released with a place for the next attempt.
	Returned Action = iota
	// Placed: a node gave it that place. Bare: there was no holder to wait behind.
	Placed
	Bare
	// Claimed: a goroutine claimed the attempt. Dropped: it was given up.
	Claimed
	Dropped
	// Early: it was won before. Yielded: it gave way before.
	Early
	Yielded
	actions
)

var actionNames = [actions]string{
	Returned: "a release with a place for the next attempt", Placed: "that place is given", Bare: "nobody to stand behind",
	Claimed: "the attempt is claimed", Dropped: "it is given up", Early: "it is won before it is claimed", Yielded: "it gives way before it is claimed",
}

func (d Action) String() string { return actionNames[d] }

// Actions counts how often each happened, on all paths that were searched.
type Actions [actions]int

func (d *Actions) add(more Actions) {
	for i, n := range more {
		d[i] += n
	}
}
