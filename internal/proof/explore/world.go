package explore

import "github.com/leasehold-dev/leasehold/internal/proof/modelnode"

// pass lets one tick pass everywhere.
func (w *walker) pass(st *state) {
	for n := range w.m.Nodes {
		nd := &st.nodes[n]
		nd.shut -= min(nd.shut, 1)
		nd.counter, nd.read = w.m.counts(w.m.older(nd.counter, 1)), w.m.older(nd.read, 1)
		w.expire(st, n, 1)
	}
	st.top = w.m.older(st.top, 1)
	st.wait -= min(st.wait, 1)
	for i := range w.m.Attempts {
		if st.slots[i].life != unused {
			st.slots[i].age++
		}
		if st.slots[i].beside.vote != 0 {
			st.slots[i].beside.age++
		}
	}
}

// expire takes time off what node n keeps.
func (w *walker) expire(st *state, n int, by uint8) {
	for i := range w.m.Attempts {
		c := &st.slots[i].cells[n]
		c.key -= min(c.key, by)
		c.tomb -= min(c.tomb, by)
		if c.key == 0 {
			c.share.slot = 0
		}
		if c.line.place -= min(c.line.place, by); c.line.place == 0 {
			c.line.stamp = 0
		}
	}
}

// fault makes something go wrong at a node.
func (w *walker) fault(st *state, mv move) {
	n, nd := mv.node, &st.nodes[mv.node]
	switch mv.kind {
	case crash:
		st.crashes--
		if w.m.hasKind() {
			q := sharedAsk{node: sharing{w}.kept(st, n), crash: true}
			sharing{w}.keepShared(st, n, &w.shared.execute(&q).node)
			return
		}
		before := w.lock(st, n)
		l := before.Crash(w.m.KeepCounter, ticks(w.m.Quarantine), nodeNow(st, n))
		if w.m.KeepLine {
			l.Line = before.Line
		}
		w.keep(st, n, l)
		nd.shut = left(l.ShutUntil, nodeNow(st, n))
		if w.m.Reread != NeverReread {
			nd.unread, nd.read = (1<<w.m.Nodes-1)&^(1<<n), 0
		}
	case lose:
		st.losses -= min(st.losses, 1)
		l := w.lock(st, n)
		l.Owner, l.Expiry = 0, 0
		w.keep(st, n, l)
	case jump:
		st.jumps--
		w.expire(st, int(n), uint8(w.m.TTL))
	case reread:
		nd.unread &^= 1 << mv.arg
		nd.read = max(nd.read, st.nodes[mv.arg].counter)
		if w.answer = (modelnode.Answer[uint8]{Token: w.m.number(st.nodes[mv.arg].counter)}); nd.unread == 0 {
			nd.counter, nd.read = max(nd.counter, nd.read), 0
		}
	}
}

// checkMutex looks for two leases that are valid at the present instant.
func (w *walker) checkMutex(st *state) {
	holders := 0
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life == holding && w.valid(s) {
			holders++
		}
	}
	if holders > 1 && !w.m.hasKind() || w.m.hasKind() && (sharing{w}).conflict(st) {
		w.broke(Mutex)
	}
}

// checkToken looks at the token of a grant. Where time is kept, grants follow
// each other and each must be larger than all before. Without time they
// overlap; then a grant must be larger than those that were there before its
// attempt began, and different from all.
func (w *walker) checkToken(st *state, s *slot, t token) {
	t = w.m.older(t, s.age)
	w.granted = t
	if w.m.NoTime {
		if t <= s.floor || st.used&(1<<t) != 0 {
			w.broke(Tokens)
		}
		st.used |= 1 << t
	} else if t == 0 || t <= (sharing{w}).barrier(st, s) {
		w.broke(Tokens)
	}
	sharing{w}.raise(st, s, t)
}

// checkGivenBack looks at a lost attempt that has nothing more to hear: wherever
// it may get the lock, or has it, a release must follow.
func (w *walker) checkGivenBack(s *slot) {
	for n := range w.m.Nodes {
		c := &s.cells[n]
		if (c.key > 0 || c.line.place > 0 || c.acquiring()) && !c.release && !c.bury && !c.freed {
			w.broke(Orphans)
		}
	}
}

// checkRenewal looks at a lease that was just renewed.
func (w *walker) checkRenewal(st *state, s *slot) {
	if w.m.older(s.token, s.age) < (sharing{w}).barrier(st, s) {
		w.broke(Renewals)
	}
}

// conflict looks for leases that exclude each other and are valid at the same instant: a
// writer and another, two of one slot, or more than there are permits.
func (w sharing) conflict(st *state) bool {
	var holders, writers int
	var slots uint8
	for i := range w.m.Attempts {
		s := &st.slots[i]
		if s.life != holding || !w.valid(s) {
			continue
		}
		holders++
		if s.writes(w.m) {
			writers++
		}
		if w.m.hasSlots() {
			if slots&(1<<s.agreed) != 0 {
				return true
			}
			slots |= 1 << s.agreed
		}
	}
	return writers > 0 && holders > 1 || int64(holders) > w.m.Kind.Limit
}

// barrier is the largest token that a grant of s must be larger than: of all grants, or
// for a reader those of writers, or those of its slot.
func (w sharing) barrier(st *state, s *slot) token {
	switch {
	case !w.m.hasKind():
		return st.top
	case w.m.hasSlots():
		return st.tops[s.agreed-1]
	case s.reads:
		return st.tops[0]
	}
	return st.top
}

// raise notes that s was granted with token t.
func (w sharing) raise(st *state, s *slot, t token) {
	switch {
	case !w.m.hasKind():
	case w.m.hasSlots():
		st.tops[s.agreed-1] = max(st.tops[s.agreed-1], t)
	case !s.reads:
		st.tops[0] = max(st.tops[0], t)
	}
	st.top = max(st.top, t)
}

// writers is how many attempts so far were writers'.
func (w sharing) writers(st *state) (n int) {
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life != unused && s.writes(w.m) {
			n++
		}
	}
	return n
}

// crossed makes the second attempt get the lock, and another slot at one node.
func (w sharing) crossed(st *state) {
	w.apply(st, move{kind: begin})
	w.apply(st, move{kind: deliverAcquire})
	w.apply(st, move{kind: begin, slot: 1})
	for n := range uint8(w.m.Nodes) {
		w.apply(st, move{kind: deliverAcquire, slot: 1, node: n})
	}
	for n := uint8(1); n < uint8(w.m.Nodes); n++ {
		w.apply(st, move{kind: hearAcquire, slot: 1, node: n})
	}
	st.slots[0] = slot{life: over, released: true} // its other messages never arrive
}
