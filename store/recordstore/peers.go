package recordstore

import (
	"slices"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// session returns the name of this client among its peers, or "".
func (s *engine) session() string {
	if s.ringer == nil {
		return ""
	}
	return s.ringer.Session()
}

// floor returns the smallest token that a lease in the version after snap may have.
func (s *engine) floor(snap *snapshot) fence.Token {
	if s.peers == nil {
		return snap.floor()
	}
	return max(snap.floor(), fence.Token(min(s.peers.Floor(), MaxFloor)*tokensPerWrite+1))
}

// deletable reports whether the driver may delete a version.
func (s *engine) deletable(snap *snapshot) bool {
	return snap.deletable() || s.peers != nil && snap.rec.Idle()
}

// ended reports whether the client has ended that wrote the beat of an owner's lease or place.
func (s *engine) ended(snap *snapshot, owner string) bool {
	l := snap.lives[entry{owner: owner}]
	return s.peers != nil && l.by != "" && l.by != s.peers.Session() && s.peers.Ended(l.by)
}

// withoutEnded returns the record of snap, in which leases of clients that have ended expire
// now, and so do their places at the front of the queue. The others can be looked at when
// they are first.
func (s *engine) withoutEnded(snap *snapshot, now clock.Instant) rule.Record {
	rec := snap.rec
	if s.peers == nil {
		return rec
	}
	holds := false
	for i, h := range snap.rec.Holds {
		if s.ended(snap, h.Owner) {
			if !holds {
				rec.Holds, holds = slices.Clone(rec.Holds), true
			}
			rec.Holds[i].Expiry = min(h.Expiry, now)
		}
	}
	for i, p := range snap.rec.Queue {
		if !s.ended(snap, p.Owner) {
			break
		}
		if i == 0 {
			rec.Queue = slices.Clone(rec.Queue)
		}
		rec.Queue[i].Expiry = min(p.Expiry, now)
	}
	return rec
}

// ring wakes the clients that have something to do now that next has replaced old: those that
// were handed the lock, and among peers the one that is the first in the queue, since it watches
// whether those before it end. Elsewhere a ring costs more, and the first one learns early enough
// when it refreshes its place.
func (g *register) ring(old, next *snapshot) {
	if g.s.ringer == nil {
		return
	}
	var rung []string
	ring := func(owner string) {
		if l := next.lives[entry{owner: owner}]; l.by != "" && l.by != g.s.ringer.Session() && !slices.Contains(rung, l.by) {
			rung = append(rung, l.by)
			g.s.ringer.Ring(l.by, g.key)
		}
	}
	for _, h := range next.rec.Holds {
		if !slices.ContainsFunc(old.rec.Holds, func(o rule.Hold) bool { return o.Owner == h.Owner }) {
			ring(h.Owner)
		}
	}
	if q := next.rec.Queue; g.s.peers != nil && len(q) > 0 && (len(old.rec.Queue) == 0 || old.rec.Queue[0].Owner != q[0].Owner) {
		ring(q[0].Owner)
	}
}
