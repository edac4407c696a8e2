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
			q := sharedAsk{node: w.shared(st, n), kind: crash}
			w.keepShared(st, n, &w.execute(&q).node)
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
	if holders > 1 && !w.m.hasKind() || w.m.hasKind() && w.conflict(st) {
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
	} else if t == 0 || t <= w.barrier(st, s) {
		w.broke(Tokens)
	}
	w.raise(st, s, t)
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
	if w.m.older(s.token, s.age) < w.barrier(st, s) {
		w.broke(Renewals)
	}
}
