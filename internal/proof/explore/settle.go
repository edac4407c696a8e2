package explore

import (
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// settle removes from a state what makes no difference to anything that can still
// happen, so that states which differ only in that become one. Every line of it must be
// sound: it may forget, but not make a violation unreachable.
func (w *walker) settle(st *state) {
	for i := range w.m.Attempts {
		s := &st.slots[i]
		if s.life == over { // nothing changes with time after the node timeout
			s.beside.age = min(s.beside.age, 2)
		}
		switch {
		case s.life == unused:
		case w.m.Plain:
			w.settlePlainly(st, s)
		default:
			w.settleSlot(st, i)
		}
	}
	if w.m.NoTime && !w.m.Plain {
		w.settleUsed(st)
	}
}

// settlePlainly does the least that keeps the number of states finite.
func (w *walker) settlePlainly(st *state, s *slot) {
	w.impatient(st, s)
	switch {
	case s.life != holding:
		s.age = min(s.age, w.ageLimit(s, true, true))
	case w.dead(s):
		w.end(s)
	}
}

// ended returns the state that represents all in which nothing can break any more.
func ended() (st state) {
	for i := range st.slots {
		st.slots[i].life = over
	}
	return st
}

// settleUsed forgets the tokens that every grant still to come is larger than.
func (w *walker) settleUsed(st *state) {
	floor := st.top
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life == asking {
			floor = min(floor, s.floor)
		}
	}
	st.used &^= 1<<(floor+1) - 1
}

func (w *walker) settleSlot(st *state, i int) {
	s := &st.slots[i]
	if s.life == holding && w.dead(s) {
		w.end(s)
	}
	w.impatient(st, s)
	if !w.m.EveryEvent && !w.m.Waits && s.life == asking && int(s.age) >= w.m.TTL {
		// Its validity would be over: whatever happens next, it is lost.
		w.stepAsking(st, s, quorum.Event{Kind: quorum.Cancel})
	}
	if s.token != 0 && w.m.Reserves == 0 && (w.m.Check&Renewals == 0 || w.m.older(s.token, s.age) < (sharing{w}).barrier(st, s)) {
		s.token = 0 // older than the newest: by how much is all the same
	}
	if s.life == over && !s.released && !w.m.EveryEvent && !w.mayReturn(st) {
		w.giveBack(s)
	}
	acquiring, confirming, keys, busy := false, false, false, false
	for n := range w.m.Nodes {
		c := &s.cells[n]
		if s.life == lost {
			c.acquire.token = 0
		}
		if w.m.Waits {
			w.settleLine(s, n)
		} else if w.m.MaxDelay > 0 && int(s.age) > w.m.MaxDelay { // it does not arrive any more
			if c.acquire.stage == asked {
				c.acquire = message{stage: saidNo}
			} else if c.acquire.stage == stray {
				c.acquire = message{}
			}
			c.again = false
			if c.share.move.stage == asked {
				c.share.move = message{stage: saidNo}
			} else if c.share.move.stage == stray {
				c.share.move = message{}
			}
		}
		w.settleCell(st, i, n)
		if !w.m.EveryEvent {
			c.dropRefusals(w.m.Waits || w.m.hasSlots())
		}
		acquiring = acquiring || c.acquiring()
		confirming = confirming || c.confirming()
		keys = keys || c.key > 0 || c.line.place > 0
		busy = busy || *c != cell{}
	}
	if s.life == over && !keys && !acquiring && !w.m.ReuseOwner {
		s.released = true // there is nothing to give back
	}
	if !acquiring {
		s.propose = 0
	}
	if w.reducesInQueue() || w.m.reducesShared() || s.life == over && s.released {
		s.repeated = false // which only the release asks for
	}
	s.age = min(s.age, w.ageLimit(s, acquiring, confirming))
	if s.life == over && s.released && !busy && !s.gaveWay && s.beside.vote == 0 {
		*s = slot{life: over, released: true}
	}
}

// dead reports whether a lease is not valid and cannot become valid again.
func (w *walker) dead(s *slot) bool {
	if w.valid(s) {
		return false
	}
	revives := func(start uint8) bool {
		renewed := w.stepLease(s.machine, leasefsm.Renewed, at(start), at(s.age))
		return w.lease(renewed).Valid(at(s.age))
	}
	if b := &s.beside; b.vote != 0 && (b.op == quorum.Confirm && w.lease(s.machine).Passable(at(s.age)) || b.op == quorum.Extend && revives(s.age-b.age)) {
		return false
	}
	return s.vote == 0 || !revives(s.voteAt)
}

// ageLimit is the age from which on it makes no difference.
func (w *walker) ageLimit(s *slot, acquiring, confirming bool) uint8 {
	limit := 0
	switch {
	case s.life == holding:
		return s.age
	case s.life == asking && w.m.Waits:
		return s.age
	case w.m.Waits && w.m.MaxDelay > 0 && acquiring:
		limit = w.m.Patience + w.m.MaxDelay + 1
	case s.life == asking:
		limit = w.m.TTL // its validity would be over: whatever happens next, it is lost
	}
	if w.m.MaxDelay > 0 && acquiring {
		limit = max(limit, w.m.MaxDelay+1)
	}
	if w.m.Floor && (s.life == asking || acquiring || confirming) {
		// From then on its tokens are below every node's clock.
		limit = max(limit, w.m.TTL+w.m.ClockError+2)
	}
	return uint8(limit)
}

// owner is what a node has, and may still get, of a slot's owner.
type owner struct {
	key, acquiring bool
}

// ownerAt looks at all attempts of the slot's owner.
func (w *walker) ownerAt(st *state, i, n int) (o owner) {
	if !w.m.ReuseOwner {
		c := &st.slots[i].cells[n]
		return owner{c.key > 0, c.acquiring()}
	}
	for j := i % w.m.Clients; j < w.m.Attempts; j += w.m.Clients {
		s := &st.slots[j]
		o.key = o.key || s.cells[n].key > 0
		o.acquiring = o.acquiring || s.life == unused || s.cells[n].acquiring()
	}
	return o
}

// settleCell forgets messages that cannot change anything.
func (w *walker) settleCell(st *state, i, n int) {
	s, r := &st.slots[i], &w.m.Rules
	c := &s.cells[n]
	own := w.ownerAt(st, i, n)
	if w.reduces() || w.m.reducesShared() && s.writes(w.m) {
		// A tombstone makes an acquire fail, and it may as well never arrive.
		c.tomb, c.release, c.bury = 0, c.release || c.bury, false
		if s.life == over { // a key that only has others refused may as well never come
			c.heals = 0
		}
		if s.life == over && c.key > 0 && c.release && !r.ExtendCreates {
			// The key ends at any moment. Until then it only has others refused,
			// whose requests may as well not arrive; so it may end at once,
			// unless a confirmation still counts on it.
			if c.strays = [2]uint8{}; c.confirming() {
				c.key = uint8(w.m.TTL)
			} else {
				c.key, c.release, own.key = 0, own.acquiring, false
			}
		}
	}
	if w.m.reducesShared() {
		c.tomb, c.release, c.bury, c.share.always = 0, c.release || c.bury, false, false
	}
	if w.reducesInQueue() {
		// As above; but the release may be what hands the lock on, and so takes its
		// time where there is something to release.
		c.tomb, c.release, c.bury = 0, c.release || c.bury, false
	}
	creating := c.heals > 0 || c.extend.stage == asked && w.heals() || c.beside != idle && w.heals() || r.ExtendCreates && (c.extend.sent() || c.strays != [2]uint8{})
	if !own.acquiring && !creating {
		c.tomb, c.freed, c.share.always = 0, false, false
		c.release, c.bury = c.release || c.bury, false // there is nothing to bury
	}
	if !own.key && !own.acquiring && !creating && c.line.place == 0 {
		release := c.release && w.m.Waits && w.mayHand(st, i, n)
		c.refuse(r.ConfirmAnywhere)
		c.release = release
	}
	durable := w.m.Crashes == 0 || w.m.KeepCounter
	for i := range c.confirm {
		// Counters that never fall make smaller confirmations void.
		if msg := &c.confirm[i]; msg.stage == stray && durable && w.m.older(msg.token, s.age) <= st.nodes[n].counter {
			*msg = message{}
		}
	}
	for range c.confirm { // in order
		for i := range len(c.confirm) - 1 {
			if c.confirm[i].rank() > c.confirm[i+1].rank() {
				c.confirm[i], c.confirm[i+1] = c.confirm[i+1], c.confirm[i]
			}
		}
	}
}

// refuse is for a node that will never have this owner again. Every request
// still under way would be refused, and might as well have been already.
func (c *cell) refuse(confirms bool) {
	c.release, c.strays = false, [2]uint8{}
	if c.extend.sent() {
		c.extend = message{stage: saidNo}
	}
	if confirms {
		return
	}
	for i := range c.confirm {
		switch c.confirm[i].stage {
		case asked:
			c.confirm[i] = message{stage: saidNo}
		case stray:
			c.confirm[i] = message{}
		}
	}
}

// rank orders confirmations as they were sent, which is by token.
func (m message) rank() int {
	if m.stage == idle {
		return 1 << 16
	}
	return int(m.token)<<8 | int(m.stage)
}

// spent reports whether nothing that is checked can break any more: there will be no
// more grants, and nobody holds the lock with an old token.
func (w *walker) spent(st *state) bool {
	if w.m.Check&(Orphans|Freed|Bounded) != 0 || w.m.Reserves > 0 {
		return false
	}
	holders := 0
	for i := range w.m.Attempts {
		s := &st.slots[i]
		switch s.life {
		case unused, asking:
			return false
		case holding:
			holders++
			renews := s.vote != 0 || int(s.renewals) < w.m.Renewals || w.m.Extends > 0
			if w.m.Check&Renewals != 0 && renews && w.m.older(s.token, s.age) < st.top {
				return false
			}
		}
	}
	return w.m.Check&Mutex == 0 || holders < 2
}
