package sim

import "slices"

// applied judges one step of one node.
func (j *judge) applied(n *node, o op, said []byte, replayed bool) {
	refused := len(said) > 0 && said[0] == '-'
	if replayed && o.acquires() && !refused {
		for _, k := range o.owners {
			j.w.owner(k).revived = true
		}
	}
	switch {
	case refused || len(o.owners) == 0:
	case o.name == "confirm" && yes(said):
		j.tally.Confirms++
	case o.name == "extend" && yes(said):
		j.tally.Renewals++
	case o.name == "heal" && yes(said):
		j.tally.Heals++
	case o.acquires() && buried(said):
		j.tally.Buried++
	}
	if o.name == "return" && !refused && len(o.owners) > 1 {
		j.tally.Returned++
	}
	if o.releases() && len(o.owners) > 0 && !refused {
		j.released(n, o.owners[0])
	}
	j.compareHolders(n, o)
}

// yes and buried read the first word of a script's answer.
func yes(said []byte) bool    { return firstNumber(said) == '1' }
func buried(said []byte) bool { return firstNumber(said) == '2' }

// firstNumber returns the first number of an array, which may be nested.
func firstNumber(said []byte) byte {
	i := slices.Index(said, ':')
	if len(said) == 0 || said[0] != '*' || i < 0 || i+1 >= len(said) {
		return 0
	}
	return said[i+1]
}

// released judges that a node ends a lease only on request.
func (j *judge) released(n *node, number int) {
	n.releasedAt[number] = n.clock()
	o := j.w.owner(number)
	if early := o.least - j.w.now(); early > 0 && o.client >= 0 && j.w.clients[o.client].running() {
		j.wrong(Answers, "o%d is released %v before its least hold is over", number, early)
		o.least = 0
	}
}

// compareHolders finds the owners to which the command has given a lock, if there are any.
func (j *judge) compareHolders(n *node, by op) {
	for lock, was := range n.holders {
		all := n.held(lock)
		var owners []int
		for _, h := range all {
			owners = append(owners, h.owner)
			if !slices.Contains(was, h.owner) {
				n.offered[lock] = offer{}
				j.givenTo(n, h.owner, by)
			}
		}
		if len(all) > 0 && j.w.script.kind(lock).IsMutex() {
			n.offered[lock] = offer{}
		}
		n.holders[lock] = owners
	}
}

// givenTo judges that a command gives a lock to an owner.
func (j *judge) givenTo(n *node, number int, by op) {
	o := j.w.owner(number)
	if !slices.Contains(by.owners, number) || by.releases() {
		j.tally.Handed++
		if o.client >= 0 && j.w.script.onlyKills() && j.w.clients[o.client].links[n.index].hungUp() {
			j.wrong(Idle, "node n%d hands the lock to o%d, whose process is dead, by: %v", n.index+1, number, by)
		}
	}
	if at, ok := n.releasedAt[number]; ok && n.clock().Sub(at) < o.ttl && !o.revived {
		j.wrong(Orphan, "node n%d gives the lock to o%d, which it was told to release before, by: %v", n.index+1, number, by)
	}
}

// starved names the workers that made no progress.
func (j *judge) starved() {
	for _, c := range j.w.clients {
		for _, k := range c.workers {
			if k.doing != "is done" {
				j.wrong(Waiting, "c%d.w%d %s since %v", c.index+1, k.index, k.doing, k.since)
				return
			}
		}
	}
}

// atTheEnd looks for leftovers: locks and places of attempts that are over, if a node never
// received their release, whatever happened before.
func (j *judge) atTheEnd() {
	for _, n := range j.w.nodes {
		for i := range n.holders {
			for _, h := range n.held(i) {
				if j.leftBehind(h.owner) {
					j.wrong(Orphan, "node n%d keeps lock %d for o%d for another %v", n.index+1, i+1, h.owner, h.left)
					return
				}
			}
		}
		for _, key := range n.server.Keys() {
			lock, owner, ok := placeOf(key)
			if !ok {
				continue
			}
			if number := j.w.hist.number(owner); j.leftBehind(number) {
				_, left, _ := n.server.Value(key)
				j.wrong(Orphan, "node n%d keeps a place in the queue for lock %d for o%d for another %v", n.index+1, lock+1, number, left)
				return
			}
		}
	}
}

// leftBehind says whether a lock or place of an owner at a node is a leftover, when all
// workers are done: whether no fault excuses it.
func (j *judge) leftBehind(number int) bool {
	o := j.w.owner(number)
	return !o.revived && !o.left && o.client >= 0 && !j.w.clients[o.client].dead
}
