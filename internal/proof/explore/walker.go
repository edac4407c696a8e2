package explore

import (
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
)

// walker takes steps in the world of one Model. Each worker has its own.
type walker struct {
	*driver
	m *Model
	// broken is what the last step broke; answer, what a node said in it;
	// granted, the token of the lease it led to.
	broken  Property
	answer  modelnode.Answer[uint8]
	granted token
	actions Actions
	shared  *sharedNodes // with a Kind
	tombs   [maxSlots]modelnode.Tomb[uint8]
	line    [maxSlots]modelnode.Place[uint8]
	sorted  canonicalizer
	fair    *walker
	// For served: states from which all waiters are served, and those on the way.
	wellFrom map[print]bool
	course   []print
	due      []move
}

func newWalker(m *Model, ms *machines) *walker {
	return &walker{driver: ms.driver(), m: m, shared: newSharedNodes(m)}
}

// initial are the states a search begins with: one for each way the counters
// can be spread, up to a permutation of the nodes.
func (w *walker) initial() []state {
	m := w.m
	first := state{crashes: uint8(m.Crashes), losses: uint8(m.Losses), jumps: uint8(m.Jumps), twice: uint8(m.Twice),
		doubts: uint8(m.Doubts), skips: uint8(m.Skips)}
	if m.Lists {
		for n := range m.Nodes {
			if oldNodes.Has(n) {
				first.nodes[n].list = knowsOld
			}
		}
	}
	states := []state{first}
	for n := range m.Nodes {
		var more []state
		for _, st := range states {
			for c := 0; c <= m.Spread; c++ {
				st.nodes[n].counter = token(c)
				for ahead := 0; ahead <= m.ClockError; ahead++ {
					st.nodes[n].ahead = uint8(ahead)
					more = append(more, st)
				}
			}
		}
		states = more
	}
	for i := range states {
		if m.Begun {
			w.begun(&states[i])
		}
		if m.Wrote {
			st := &states[i]
			st.top, st.tops[0] = 1, 1
			for n := range m.Nodes {
				st.nodes[n].counter = token(bit(n != 1))
			}
		}
		if m.Crossed {
			sharing{w}.crossed(&states[i])
		}
		if m.Full {
			w.begun(&states[i])
		}
	}
	return states
}

// broke notes that p does not hold any more, if it is to be checked.
func (w *walker) broke(p Property) { w.broken |= p & w.m.Check }

// keeper is the slot in whose cells node keys of slot i's owner are: its own,
// unless several attempts share an owner.
func (m *Model) keeper(i uint8) uint8 {
	if m.ReuseOwner {
		return i % uint8(m.Clients)
	}
	return i
}

// owner is the keeper of node n's key, or -1.
func (w *walker) owner(st *state, n uint8) int {
	for i := range w.m.Attempts {
		if st.slots[i].cells[n].key > 0 {
			return i
		}
	}
	return -1
}

// valid reports whether a held lease may be trusted at present.
func (w *walker) valid(s *slot) bool { return w.lease(s.machine).Valid(at(s.age)) }

// nodeNow is what node n's clock says.
func nodeNow(st *state, n uint8) clock.Instant {
	return epoch.Add(ticks(int(st.nodes[n].ahead)))
}

// lock is what node n keeps, as the model of a node sees it. Owners are keepers
// plus one.
func (w *walker) lock(st *state, n uint8) modelnode.Lock[uint8] {
	now, nd := nodeNow(st, n), &st.nodes[n]
	l := modelnode.Lock[uint8]{Counter: w.m.number(nd.counter)}
	if nd.shut > 0 || nd.unread > 0 {
		l.ShutUntil = now.Add(ticks(max(1, int(nd.shut))))
	}
	tombs := w.tombs[:0]
	for i := range w.m.Attempts {
		c := &st.slots[i].cells[n]
		if c.key > 0 {
			l.Owner, l.Expiry = uint8(i)+1, now.Add(ticks(int(c.key)))
		}
		if c.tomb > 0 {
			tombs = append(tombs, modelnode.Tomb[uint8]{Owner: uint8(i) + 1, Expiry: now.Add(ticks(int(c.tomb)))})
		}
	}
	if len(tombs) > 0 {
		l.Tombs = tombs
	}
	if w.m.Waits {
		l.Line = w.places(st, n, w.line[:0])
	}
	return l
}

// keep puts back what node n keeps after an operation.
func (w *walker) keep(st *state, n uint8, l modelnode.Lock[uint8]) {
	now := nodeNow(st, n)
	st.nodes[n].counter = w.m.packed(l.Counter)
	for i := range w.m.Attempts {
		st.slots[i].cells[n].key, st.slots[i].cells[n].tomb = 0, 0
	}
	if l.Owner > 0 && l.Expiry > now {
		st.slots[l.Owner-1].cells[n].key = left(l.Expiry, now)
	}
	for _, t := range l.Tombs {
		st.slots[t.Owner-1].cells[n].tomb = left(t.Expiry, now)
	}
	if w.m.Waits {
		w.keepPlaces(st, n, &l)
	}
}

func left(end, now clock.Instant) uint8 { return uint8(end.Sub(now) / tick) }
