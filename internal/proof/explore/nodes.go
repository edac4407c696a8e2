package explore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// nodes has the steps of nodes: they execute requests, and faults happen to them.
type nodes struct {
	*judge
	answer     modelnode.Answer[uint8] // to the last request
	shared     *sharedNodes            // with a Kind
	tombstones [maxSlots]modelnode.Tombstone[uint8]
	queue      [maxSlots]modelnode.Place[uint8]
}

// sharedAt is what node n keeps.
func (ns *nodes) sharedAt(st *state, n uint8) (nd sharedNode) {
	nd.counter, nd.quarantined = st.nodes[n].counter, st.nodes[n].quarantined
	for i := range ns.m.Attempts {
		c := &st.slots[i].cells[n]
		nd.keys[i] = sharedKey{c.key, c.tombstone, c.share.slot, c.share.broken}
	}
	return nd
}

// keepShared puts back what node n keeps after an operation.
func (ns *nodes) keepShared(st *state, n uint8, nd *sharedNode) {
	st.nodes[n].counter, st.nodes[n].quarantined = nd.counter, nd.quarantined
	for i := range ns.m.Attempts {
		c := &st.slots[i].cells[n]
		c.key, c.tombstone, c.share.slot, c.share.broken = nd.keys[i].key, nd.keys[i].tombstone, nd.keys[i].slot, nd.keys[i].broken
	}
}

// places returns the places in node n's queue, in order.
func (ns *nodes) places(st *state, n uint8, to []modelnode.Place[uint8]) []modelnode.Place[uint8] {
	now := nodeNow(st, n)
	for rank := range uint8(ns.m.Attempts) {
		for i := range ns.m.Attempts {
			s := &st.slots[i]
			if q := &s.cells[n].queue; q.place > 0 && s.rank == rank {
				to = append(to, modelnode.Place[uint8]{
					Owner: uint8(i) + 1, Ticket: uint64(rank), Expiry: now.Add(ticks(int(q.place))), Stamp: uint64(q.stamp),
				})
			}
		}
	}
	return to
}

// keepPlaces stores node n's queue after an operation.
func (ns *nodes) keepPlaces(st *state, n uint8, l *modelnode.Lock[uint8]) {
	now := nodeNow(st, n)
	for i := range ns.m.Attempts {
		q := &st.slots[i].cells[n].queue
		q.place, q.stamp = 0, 0
	}
	for _, p := range l.Queue {
		if p.Expiry > now {
			q := &st.slots[p.Owner-1].cells[n].queue
			q.place, q.stamp = left(p.Expiry, now), uint8(p.Stamp)
		}
	}
}

// push puts the pushes of node n on the wire.
func (ns *nodes) push(st *state, n uint8, pushes []modelnode.Push[uint8]) {
	for _, t := range pushes {
		if s := &st.slots[t.Owner-1]; t.Granted && s.life == asking {
			s.cells[n].queue.pushed(push{ns.m.packed(t.Token), uint8(t.Stamp) + 1})
		}
	}
}

func (ns *nodes) tell(st *state, mv move) {
	if mv.kind == tellNew {
		st.nodes[mv.node].list = knowsNew
		return
	}
	st.nodes[mv.node].list = knowsBoth
	var told quorum.Set
	for n := range ns.m.Nodes {
		if st.nodes[n].list == knowsBoth {
			told |= quorum.SetOf(n)
		}
	}
	cfg := quorum.Config{Nodes: ns.m.Nodes, Sets: knowsBoth.sets()}
	if !st.switching && cfg.HasQuorum(told) {
		st.switching, st.wait = true, uint8(ns.m.SwitchWait)
	}
}

// nodeNow returns the time of node n's clock.
func nodeNow(st *state, n uint8) clock.Instant {
	return epoch.Add(ticks(int(st.nodes[n].ahead)))
}

// lock is what node n keeps, as the model of a node sees it. Owners are keepers
// plus one.
func (ns *nodes) lock(st *state, n uint8) modelnode.Lock[uint8] {
	now, nd := nodeNow(st, n), &st.nodes[n]
	l := modelnode.Lock[uint8]{Counter: ns.m.number(nd.counter)}
	if nd.quarantined > 0 || nd.unread > 0 {
		l.QuarantinedUntil = now.Add(ticks(max(1, int(nd.quarantined))))
	}
	tombstones := ns.tombstones[:0]
	for i := range ns.m.Attempts {
		c := &st.slots[i].cells[n]
		if c.key > 0 {
			l.Owner, l.Expiry = uint8(i)+1, now.Add(ticks(int(c.key)))
		}
		if c.tombstone > 0 {
			tombstones = append(tombstones, modelnode.Tombstone[uint8]{Owner: uint8(i) + 1, Expiry: now.Add(ticks(int(c.tombstone)))})
		}
	}
	if len(tombstones) > 0 {
		l.Tombstones = tombstones
	}
	if ns.m.Waits {
		l.Queue = ns.places(st, n, ns.queue[:0])
	}
	return l
}

// keep puts back what node n keeps after an operation.
func (ns *nodes) keep(st *state, n uint8, l modelnode.Lock[uint8]) {
	now := nodeNow(st, n)
	st.nodes[n].counter = ns.m.packed(l.Counter)
	for i := range ns.m.Attempts {
		st.slots[i].cells[n].key, st.slots[i].cells[n].tombstone = 0, 0
	}
	if l.Owner > 0 && l.Expiry > now {
		st.slots[l.Owner-1].cells[n].key = left(l.Expiry, now)
	}
	for _, t := range l.Tombstones {
		st.slots[t.Owner-1].cells[n].tombstone = left(t.Expiry, now)
	}
	if ns.m.Waits {
		ns.keepPlaces(st, n, &l)
	}
}

func left(end, now clock.Instant) uint8 { return uint8(end.Sub(now) / tick) }

// expire takes time off what node n keeps.
func (ns *nodes) expire(st *state, n int, by uint8) {
	for i := range ns.m.Attempts {
		c := &st.slots[i].cells[n]
		c.key -= min(c.key, by)
		c.tombstone -= min(c.tombstone, by)
		if c.key == 0 {
			c.share.slot, c.share.broken = 0, false
		}
		if c.queue.place -= min(c.queue.place, by); c.queue.place == 0 {
			c.queue.stamp = 0
		}
	}
}

// fault makes something go wrong at a node.
func (ns *nodes) fault(st *state, mv move) {
	n, nd := mv.node, &st.nodes[mv.node]
	switch mv.kind {
	case crash:
		st.crashes--
		if ns.m.hasKind() {
			q := sharedAsk{node: ns.sharedAt(st, n), crash: true}
			ns.keepShared(st, n, &ns.shared.execute(&q).node)
			return
		}
		before := ns.lock(st, n)
		l := before.Crash(ns.m.KeepCounter, ticks(ns.m.Quarantine), nodeNow(st, n))
		if ns.m.KeepQueue {
			l.Queue = before.Queue
		}
		ns.keep(st, n, l)
		nd.quarantined = left(l.QuarantinedUntil, nodeNow(st, n))
		if ns.m.Reread != NeverReread {
			nd.unread, nd.read = (1<<ns.m.Nodes-1)&^(1<<n), 0
		}
	case lose:
		st.losses -= min(st.losses, 1)
		l := ns.lock(st, n)
		l.Owner, l.Expiry = 0, 0
		ns.keep(st, n, l)
	case jump:
		st.jumps--
		ns.expire(st, int(n), uint8(ns.m.TTL))
	case reread:
		nd.unread &^= 1 << mv.arg
		nd.read = max(nd.read, st.nodes[mv.arg].counter)
		if ns.answer = (modelnode.Answer[uint8]{Token: ns.m.number(st.nodes[mv.arg].counter)}); nd.unread == 0 {
			nd.counter, nd.read = max(nd.counter, nd.read), 0
		}
	}
}

// deliverBreak makes a node execute such a request.
func (ns *nodes) deliverBreak(st *state, mv move) {
	q := sharedAsk{node: ns.sharedAt(st, mv.node), slot: mv.slot, breaks: true}
	for i := range ns.m.Attempts {
		q.readers[i] = st.slots[i].reads
	}
	after := ns.shared.execute(&q)
	ns.answer = after.answer
	ns.keepShared(st, mv.node, &after.node)
	st.slots[mv.slot].cells[mv.node].share.breaks = breakDone
}
