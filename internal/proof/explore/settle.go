package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// settler removes from a state what makes no difference for what can still happen, so that
// states which differ only in that become one. Every line of it must be sound: it may
// forget, but not make a violation unreachable.
type settler struct {
	*judge
	leases   *leases
	attempts *attempts
}

// settle settles all attempts.
func (se *settler) settle(st *state) {
	for i := range se.m.Attempts {
		s := &st.slots[i]
		if s.life == over { // nothing changes with time after the node timeout
			s.beside.age = min(s.beside.age, 2)
		}
		switch {
		case s.life == unused:
		case se.m.Plain:
			se.settlePlainly(st, s)
		default:
			se.settleSlot(st, i)
		}
	}
	if se.m.NoTime && !se.m.Plain {
		se.settleUsed(st)
	}
}

// settlePlainly does the least that keeps the number of states finite.
func (se *settler) settlePlainly(st *state, s *slot) {
	se.impatient(st, s)
	switch {
	case s.life != holding:
		s.age = min(s.age, se.ageLimit(s, true, true))
	case se.leases.dead(s):
		se.leases.end(s)
	}
}

// settleUsed forgets the tokens that every grant still to come is larger than.
func (se *settler) settleUsed(st *state) {
	floor := st.top
	for i := range se.m.Attempts {
		if s := &st.slots[i]; s.life == asking {
			floor = min(floor, s.floor)
		}
	}
	st.used &^= 1<<(floor+1) - 1
}

func (se *settler) settleSlot(st *state, i int) {
	s := &st.slots[i]
	if s.life == holding && se.leases.dead(s) {
		se.leases.end(s)
	}
	se.impatient(st, s)
	if !se.m.EveryEvent && !se.m.Waits && s.life == asking && int(s.age) >= se.m.TTL {
		// Its validity would be over: whatever happens next, it is lost.
		se.attempts.stepAsking(st, s, quorum.Event{Kind: quorum.Cancel})
	}
	if s.token != 0 && (se.m.Check&Renewals == 0 || se.m.older(s.token, s.age) < se.barrier(st, s)) {
		s.token = 0 // older than the newest: by how much is all the same
	}
	if s.life == over && !s.released && !se.m.EveryEvent && !se.mayReturn(st) {
		se.leases.release(s)
	}
	acquiring, confirming, keys, busy := false, false, false, false
	for n := range se.m.Nodes {
		c := &s.cells[n]
		if s.life == lost {
			c.acquire.token = 0
		}
		if se.m.Waits {
			se.settleQueue(s, n)
		} else if se.m.MaxDelay > 0 && int(s.age) > se.m.MaxDelay { // it does not arrive any more
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
		se.settleCell(st, i, n)
		if !se.m.EveryEvent {
			c.dropRefusals(se.m.Waits || se.m.hasSlots())
		}
		acquiring = acquiring || c.acquiring()
		confirming = confirming || c.confirming()
		keys = keys || c.key > 0 || c.queue.place > 0
		busy = busy || *c != cell{}
	}
	if s.life == over && !keys && !acquiring && !se.m.ReuseOwner {
		s.released = true // there is nothing to release
	}
	if !acquiring {
		s.propose = 0
	}
	if se.m.reducesInQueue() || se.m.reducesShared() || s.life == over && s.released {
		s.repeated = false // which only the release asks for
	}
	s.age = min(s.age, se.ageLimit(s, acquiring, confirming))
	if s.life == over && s.released && !busy && !s.gaveWay && s.beside.vote == 0 {
		*s = slot{life: over, released: true}
	}
}

// ageLimit is the age from which on it makes no difference.
func (se *settler) ageLimit(s *slot, acquiring, confirming bool) uint8 {
	limit := 0
	switch {
	case s.life == holding:
		return s.age
	case s.life == asking && se.m.Waits:
		return s.age
	case se.m.Waits && se.m.MaxDelay > 0 && acquiring:
		limit = se.m.Patience + se.m.MaxDelay + 1
	case s.life == asking:
		limit = se.m.TTL // its validity would be over: whatever happens next, it is lost
	}
	if se.m.MaxDelay > 0 && acquiring {
		limit = max(limit, se.m.MaxDelay+1)
	}
	if se.m.Floor && (s.life == asking || acquiring || confirming) {
		// From then on its tokens are below every node's clock.
		limit = max(limit, se.m.TTL+se.m.ClockError+2)
	}
	return uint8(limit)
}

// owner is what a node has, and may still get, of a slot's owner.
type owner struct {
	key, acquiring bool
}

// ownerAt looks at all attempts of the slot's owner.
func (se *settler) ownerAt(st *state, i, n int) (o owner) {
	if !se.m.ReuseOwner {
		c := &st.slots[i].cells[n]
		return owner{c.key > 0, c.acquiring()}
	}
	for j := i % se.m.Clients; j < se.m.Attempts; j += se.m.Clients {
		s := &st.slots[j]
		o.key = o.key || s.cells[n].key > 0
		o.acquiring = o.acquiring || s.life == unused || s.cells[n].acquiring()
	}
	return o
}

// settleCell forgets messages that cannot change anything.
func (se *settler) settleCell(st *state, i, n int) {
	s, r := &st.slots[i], &se.m.Rules
	c := &s.cells[n]
	own := se.ownerAt(st, i, n)
	if se.m.reduces() || se.m.reducesShared() && s.writes(se.m) {
		// A tombstone makes an acquire fail, and it may as well never arrive.
		c.tombstone, c.release, c.bury = 0, c.release || c.bury, false
		if s.life == over { // a key that only has others refused may as well never come
			c.heals = 0
		}
		if s.life == over && c.key > 0 && c.release && !r.ExtendCreates {
			// The key ends at any moment. Until then it only has others refused,
			// whose requests may as well not arrive; so it may end at once,
			// unless a confirmation still counts on it.
			if c.strays = [2]uint8{}; c.confirming() {
				c.key = uint8(se.m.TTL)
			} else {
				c.key, c.release, own.key = 0, own.acquiring, false
			}
		}
	}
	if se.m.reducesShared() {
		c.tombstone, c.release, c.bury, c.share.always = 0, c.release || c.bury, false, false
	}
	if se.m.reducesInQueue() {
		// As above; but the release may be what hands the lock on, and so takes its
		// time where there is something to release.
		c.tombstone, c.release, c.bury = 0, c.release || c.bury, false
	}
	creating := c.heals > 0 || c.extend.stage == asked && se.healing || c.beside != idle && se.healing || r.ExtendCreates && (c.extend.sent() || c.strays != [2]uint8{})
	creating = creating || se.m.Breaks && s.life == holding // a renewal that begins later may heal
	if !own.acquiring && !creating {
		c.tombstone, c.freed, c.share.always = 0, false, false
		c.release, c.bury = c.release || c.bury, false // there is nothing to bury
	}
	if !own.key && !own.acquiring && !creating && c.queue.place == 0 {
		release := c.release && se.m.Waits && se.mayHand(st, i, n)
		c.refuse(r.ConfirmAnywhere)
		c.release = release
	}
	durable := se.m.Crashes == 0 || se.m.KeepCounter
	for i := range c.confirm {
		// Counters that never fall make smaller confirmations void.
		if msg := &c.confirm[i]; msg.stage == stray && durable && se.m.older(msg.token, s.age) <= st.nodes[n].counter {
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

// dropRefusals takes refusals off the wire.
func (c *cell) dropRefusals(waits bool) {
	if c.acquire.stage == saidNo && !waits {
		c.acquire = message{}
	}
	if c.extend.stage == saidNo {
		c.extend = message{}
	}
}

// mayReturn reports whether there is room for an attempt that begins with a release.
func (se *settler) mayReturn(st *state) bool {
	return se.m.Returns && st.slots[se.m.Attempts-1].life == unused
}

// impatient makes an attempt leave that has waited for long enough.
func (se *settler) impatient(st *state, s *slot) {
	if se.m.Waits && s.life == asking && int(s.age) >= se.m.Patience {
		se.attempts.cancel(st, s)
	}
}

// settleQueue forgets what cannot matter any more of a slot's place in node n's queue.
func (se *settler) settleQueue(s *slot, n int) {
	c := &s.cells[n]
	q := &c.queue
	if s.life != asking { // its stamps mean nothing to anybody
		q.answered()
		q.asks, q.stamp, q.pushes, q.behind, q.none = 0, 0, [2]push{}, false, false
		for k := range q.strays {
			if se.m.MaxDelay == 0 {
				q.strays[k].stamp = min(q.strays[k].stamp, 1)
			}
		}
	}
	if !c.release && !c.bury || se.m.reducesInQueue() {
		if q.always = false; !c.release && !c.bury {
			q.gives, q.toSenior = false, false
		}
	}
	if se.m.MaxDelay > 0 { // what does not arrive any more
		for k, a := range q.strays {
			if a.stamp != 0 && int(s.age) > int(a.stamp)-1+se.m.MaxDelay {
				q.strays[k] = ask{}
			}
		}
		if q.comes != 0 && int(s.age) > se.m.MaxDelay {
			q.comes, q.renewed = 0, false
		}
		if c.acquire.stage == asked && int(s.age) > int(q.sent)+se.m.MaxDelay {
			c.acquire = message{}
			q.answered()
		}
	}
	for k, p := range q.pushes { // their validity is over
		if p.stamp != 0 && int(s.age) >= int(p.stamp)-1+se.m.TTL && !se.m.EveryEvent && !se.m.CountFromPush {
			q.pushes[k] = push{}
		}
	}
	q.sort()
}

// mayHand reports whether a release of slot i at node n may hand the lock to another
// waiter.
func (se *settler) mayHand(st *state, i, n int) bool {
	for j := range se.m.Attempts {
		s := &st.slots[j]
		if j != i && (s.life == asking || s.life == unused || s.cells[n].queue.place > 0) {
			return true
		}
	}
	return false
}
