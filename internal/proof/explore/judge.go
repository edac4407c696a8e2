package explore

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// judge records what the last step broke, and what it granted.
type judge struct {
	*driver
	m       *Model
	broken  Property
	granted token // the token of the lease that the step led to
	actions Actions
}

// checkFree checks a release that was reported as successful: others can get the lock.
func (j *judge) checkFree(st *state, s *slot) {
	free := 0
	for n := range j.m.Nodes {
		if s.cells[n].key == 0 {
			free++
		}
	}
	if free < j.m.Nodes/2+1 {
		j.broke(Freed)
	}
}

// checkHold looks for a lease that is valid for longer than it may be held.
func (j *judge) checkHold(st *state) {
	for i := range j.m.Attempts {
		s := &st.slots[i]
		if s.life == holding && j.valid(s) && at(s.age).Sub(j.lease(s.machine).Since()) >= ticks(j.m.MaxHold) {
			j.broke(Bounded)
		}
	}
}

// checkQueue checks a node after a step: no owner that was released there may have the
// lock or a place.
func (j *judge) checkQueue(st *state, n uint8, before, after *modelnode.Lock[uint8]) {
	for i := range j.m.Attempts {
		o := uint8(i) + 1
		if !st.slots[i].cells[n].freed {
			continue
		}
		if after.Owner == o && before.Owner != o || waits(after, o) && !waits(before, o) {
			j.broke(Orphans)
		}
	}
}

// checkFreed checks a node that has just released an owner: it has nothing left of the owner.
func (j *judge) checkFreed(l *modelnode.Lock[uint8], owner uint8) {
	if l.Owner == owner || waits(l, owner) {
		j.broke(Orphans)
	}
}

func waits(l *modelnode.Lock[uint8], o uint8) bool {
	return slices.ContainsFunc(l.Queue, func(p modelnode.Place[uint8]) bool { return p.Owner == o })
}

// broke records that p is broken, if it is checked.
func (j *judge) broke(p Property) { j.broken |= p & j.m.Check }

// checkMutex looks for two leases that are valid at the present instant.
func (j *judge) checkMutex(st *state) {
	holders := 0
	for i := range j.m.Attempts {
		if s := &st.slots[i]; s.life == holding && j.valid(s) {
			holders++
		}
	}
	if holders > 1 && !j.m.hasKind() || j.m.hasKind() && j.conflict(st) {
		j.broke(Mutex)
	}
}

// checkToken looks at the token of a grant. Where time is kept, grants follow
// each other and each must be larger than all before. Without time they
// overlap; then a grant must be larger than those that were there before its
// attempt began, and different from all.
func (j *judge) checkToken(st *state, s *slot, t token) {
	t = j.m.older(t, s.age)
	j.granted = t
	if j.m.NoTime {
		if t <= s.floor || st.used&(1<<t) != 0 {
			j.broke(Tokens)
		}
		st.used |= 1 << t
	} else if t == 0 || t <= j.barrier(st, s) {
		j.broke(Tokens)
	}
	j.raise(st, s, t)
}

// checkGivenBack looks at a lost attempt that has nothing more to hear: wherever
// it may get the lock, or has it, a release must follow.
func (j *judge) checkGivenBack(s *slot) {
	for n := range j.m.Nodes {
		c := &s.cells[n]
		if (c.key > 0 || c.queue.place > 0 || c.acquiring()) && !c.release && !c.bury && !c.freed {
			j.broke(Orphans)
		}
	}
}

// checkRenewal checks a lease that was just renewed.
func (j *judge) checkRenewal(st *state, s *slot) {
	if j.m.older(s.token, s.age) < j.barrier(st, s) {
		j.broke(Renewals)
	}
}

// conflict looks for leases that exclude each other and are valid at the same instant: a
// writer and another, two of one slot, or more than there are permits.
func (j *judge) conflict(st *state) bool {
	var holders, writers int
	var slots uint8
	for i := range j.m.Attempts {
		s := &st.slots[i]
		if s.life != holding || !j.valid(s) {
			continue
		}
		holders++
		if s.writes(j.m) {
			writers++
		}
		if j.m.hasSlots() {
			if slots&(1<<s.agreed) != 0 {
				return true
			}
			slots |= 1 << s.agreed
		}
	}
	return writers > 0 && holders > 1 || int64(holders) > j.m.Kind.Limit
}

// barrier returns the token that a grant of s must exceed: the largest of all grants before. For
// a reader only the grants of writers count, and for a permit only those of its slot.
func (j *judge) barrier(st *state, s *slot) token {
	switch {
	case !j.m.hasKind():
		return st.top
	case j.m.hasSlots():
		return st.tops[s.agreed-1]
	case s.reads:
		return st.tops[0]
	}
	return st.top
}

// raise records that s was granted with token t.
func (j *judge) raise(st *state, s *slot, t token) {
	switch {
	case !j.m.hasKind():
	case j.m.hasSlots():
		st.tops[s.agreed-1] = max(st.tops[s.agreed-1], t)
	case !s.reads:
		st.tops[0] = max(st.tops[0], t)
	}
	st.top = max(st.top, t)
}

// isBroken reports whether a majority has broken the lease.
func (j *judge) isBroken(s *slot) bool {
	var done quorum.Set
	for n := range j.m.Nodes {
		if s.cells[n].share.breaks == breakDone {
			done |= quorum.SetOf(n)
		}
	}
	cfg := j.m.quorum()
	return cfg.HasQuorum(done)
}
