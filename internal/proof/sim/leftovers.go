package sim

import "slices"

// leftovers judges what nodes keep of attempts and leases that are over, and what they do
// on the way there.
type leftovers struct {
	*findings
	w *world
}

// applied judges one step of one node.
func (l *leftovers) applied(n *node, o op, said []byte, replayed bool) {
	refused := len(said) > 0 && said[0] == '-'
	if replayed && o.acquires() && !refused {
		for _, k := range o.owners {
			l.w.owner(k).revived = true
		}
	}
	switch {
	case refused || len(o.owners) == 0:
	case o.name == "confirm" && yes(said):
		l.tally.Confirms++
	case o.name == "extend" && yes(said):
		l.tally.Renewals++
	case o.name == "heal" && yes(said):
		l.tally.Heals++
	case o.acquires() && buried(said):
		l.tally.Buried++
	}
	if o.name == "return" && !refused && len(o.owners) > 1 {
		l.tally.Returned++
	}
	if o.releases() && len(o.owners) > 0 && !refused {
		l.released(n, o.owners[0], o)
	}
	l.compareHolders(n, o)
}

// yes and buried read the first word of a script's answer.
func yes(said []byte) bool    { return firstNumber(said) == '1' }
func buried(said []byte) bool { return firstNumber(said) == '2' }

// released judges that a node ends a lease only on request. The owner may not have the lock again
// there. If it was an operator that released it, its client may go on to ask: then it may have the lock
// again when the operator does not keep it out any more.
func (l *leftovers) released(n *node, number int, by op) {
	o := l.w.owner(number)
	bars := o.ttl
	if by.operator {
		bars = by.bars
	}
	n.barred[number] = max(n.barred[number], n.clock().Add(bars))
	if early := o.least - l.w.now(); early > 0 && o.client >= 0 && l.w.clients[o.client].running() && !(by.operator && o.freed) {
		l.wrong(Answers, "o%d is released %v before its least hold is over", number, early)
		o.least = 0
	}
}

// compareHolders finds the owners to which the command has given a lock, if there are any.
func (l *leftovers) compareHolders(n *node, by op) {
	for lock, was := range n.holders {
		all := heldAt(n, lock)
		var owners []int
		for _, h := range all {
			owners = append(owners, h.owner)
			if !slices.Contains(was, h.owner) {
				n.offered[lock] = offer{}
				l.givenTo(n, h.owner, by)
			}
		}
		if len(all) > 0 && l.w.script.kind(lock).IsMutex() {
			n.offered[lock] = offer{}
		}
		n.holders[lock] = owners
	}
}

// givenTo judges that a command gives a lock to an owner.
func (l *leftovers) givenTo(n *node, number int, by op) {
	o := l.w.owner(number)
	if !slices.Contains(by.owners, number) || by.releases() {
		l.tally.Handed++
		if o.client >= 0 && l.w.script.onlyKills() && l.w.clients[o.client].links[n.index].hungUp() {
			l.wrong(Idle, "node n%d hands the lock to o%d, whose process is dead, by: %v", n.index+1, number, by)
		}
	}
	if n.clock() < n.barred[number] && !o.revived {
		l.wrong(Orphan, "node n%d gives the lock to o%d, which it was told to release before, by: %v", n.index+1, number, by)
	}
}

// starved names the workers that made no progress.
func (l *leftovers) starved() {
	for _, c := range l.w.clients {
		for _, k := range c.workers {
			if k.doing != "is done" {
				l.wrong(Waiting, "c%d.w%d %s since %v", c.index+1, k.index, k.doing, k.since)
				return
			}
		}
	}
}

// atTheEnd looks for leftovers: locks and places of attempts that are over, if a node never
// received their release, whatever happened before.
func (l *leftovers) atTheEnd() {
	for _, n := range l.w.nodes {
		for i := range n.holders {
			for _, h := range heldAt(n, i) {
				if l.leftBehind(h.owner) {
					l.wrong(Orphan, "node n%d keeps lock %d for o%d for another %v", n.index+1, i+1, h.owner, h.left)
					return
				}
			}
		}
		for _, key := range n.server.Keys() {
			lock, owner, ok := placeOf(key)
			if !ok {
				continue
			}
			if number := l.hist.number(owner); l.leftBehind(number) {
				_, left, _ := n.server.Value(key)
				l.wrong(Orphan, "node n%d keeps a place in the queue for lock %d for o%d for another %v", n.index+1, lock+1, number, left)
				return
			}
		}
	}
}

// leftBehind reports whether a lock or place of an owner at a node is a leftover, when all
// workers are done: whether no fault excuses it.
func (l *leftovers) leftBehind(number int) bool {
	o := l.w.owner(number)
	return !o.revived && !o.left && o.client >= 0 && !l.w.clients[o.client].dead
}
