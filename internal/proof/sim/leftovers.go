package sim

import (
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// applied judges one step of one node.
func (j *judge) applied(n *node, k *call, a modelnode.Answer[int]) {
	q := k.q
	done := a.Verdict == modelnode.Done
	if k.replayed && q.Op == quorum.Acquire && (done || a.Position > 0) {
		j.w.owners[q.owner].revived = true
	}
	for _, t := range a.Told {
		if t.Granted {
			j.handed(n, t.Owner)
		}
	}
	if q.IfHeld && a.Position > 0 {
		j.tally.Returned++
	}
	switch {
	case q.Op == quorum.Acquire && done:
		j.w.owners[q.owner].asked[n.index] = j.w.owners[q.owner].asked[n.index] || !k.replayed
		if at, ok := n.releasedAt[q.owner]; ok && n.clock().Sub(at) < q.Lease.TTL && !k.replayed {
			j.wrong(Orphan, "node n%d gives the lock to o%d, which it was told to release before", n.index+1, q.owner)
		}
	case q.Op == quorum.Acquire && a.Verdict == modelnode.Buried:
		j.tally.Buried++
	case q.Op == quorum.Confirm && done:
		j.tally.Confirms++
	case q.Op == quorum.Confirm:
		j.w.owners[q.owner].asked[n.index] = false // it is gone there, and its owner hears so
	case q.Op == quorum.Extend && done:
		j.tally.Renewals++
	case q.Op == quorum.Heal && done:
		j.tally.Heals++
		if at, ok := n.releasedAt[q.owner]; ok && n.clock().Sub(at) < q.Lease.TTL && !k.replayed {
			j.wrong(Orphan, "node n%d gives the lock back to o%d, which it was told to release before", n.index+1, q.owner)
		}
	case q.Op == quorum.Release:
		n.releasedAt[q.owner] = n.clock()
	}
}

// handed judges that a node gives the lock to one who waits.
func (j *judge) handed(n *node, number int) {
	o := &j.w.owners[number]
	o.asked[n.index] = o.asked[n.index] || !o.revived
	if at, ok := n.releasedAt[number]; ok && n.clock().Sub(at) < o.ttl && !o.revived {
		j.wrong(Orphan, "node n%d hands the lock to o%d, which it was told to release before", n.index+1, number)
	}
	j.tally.Handed++
}

// sends judges what leaves a client: no release before its time.
func (j *judge) sends(puts []put) {
	for _, p := range puts {
		q := p.mc.Payload.(*question)
		o := &j.w.owners[q.owner]
		if early := o.least - j.w.now(); q.Op == quorum.Release && early > 0 && p.l.c.running() {
			j.wrong(Answers, "o%d is released %v before its least hold is over", q.owner, early)
			o.least = 0
		}
	}
}

// starved says who did not get on.
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

// atTheEnd looks for what was left behind: attempts whose release never left,
// and, of the rounds in which nothing was wrong, any lock at all.
func (j *judge) atTheEnd() {
	for i, o := range j.w.owners {
		for n := range j.w.nodes {
			if o.asked[n] && !o.told[n] && !j.w.clients[o.client].dead {
				j.wrong(Orphan, "o%d (c%d.w%d) had the lock on node n%d and never released it there", i, o.client+1, o.worker, n+1)
				return
			}
		}
	}
	for _, n := range j.w.nodes {
		for i, l := range n.locks {
			if o, left, held := l.Holder(n.clock()); held && j.w.owners[o].born > j.w.calmAt {
				j.wrong(Orphan, "node n%d keeps lock %d for o%d for another %v", n.index+1, i+1, o, left)
				return
			}
			for _, p := range l.Line {
				if left := p.Expiry.Sub(n.clock()); left > 0 && j.w.owners[p.Owner].born > j.w.calmAt {
					j.wrong(Orphan, "node n%d keeps a place in the line for lock %d for o%d for another %v", n.index+1, i+1, p.Owner, left)
					return
				}
			}
		}
	}
}
