package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// In a world with Lists, one list of nodes is replaced by another: of four nodes, 1,2,3
// by 1,2,4. The client of an attempt knows the old list, both, or the new one. A node
// keeps the list that it was told of, and serves the clients that it admits. Requests
// of other clients have no effect, and are not delivered here.
type role uint8

const (
	nobodySaid role = iota // of a node that was told nothing
	knowsOld
	knowsBoth
	knowsNew
)

var (
	oldNodes = quorum.SetOf(0, 1, 2)
	newNodes = quorum.SetOf(0, 1, 3)
)

// sets returns the sets of nodes. A client in that role needs a majority of each.
func (r role) sets() [2]quorum.Set {
	switch r {
	case knowsOld:
		return [2]quorum.Set{oldNodes}
	case knowsNew:
		return [2]quorum.Set{newNodes}
	case knowsBoth:
		return [2]quorum.Set{oldNodes, newNodes}
	}
	return [2]quorum.Set{}
}

// asks reports whether a client in that role sends to node n.
func (r role) asks(n int) bool {
	sets := r.sets()
	return r == nobodySaid || (sets[0] | sets[1]).Has(n)
}

// admits reports whether a node that was told of r serves a client in role by.
func (r role) admits(by role) bool { return r == nobodySaid || r == by || by == knowsBoth }

// serves reports whether node n serves the slot's client.
func (w *walker) serves(st *state, s *slot, n uint8) bool {
	return !w.m.Lists || w.m.AnyList || st.nodes[n].list.admits(s.role)
}

// operator appends the steps of the operator that replaces the list. The nodes are told
// of both lists, one after the other and possibly not all. When a majority of each was
// told, and leases from before have ended, nodes are told of the new list.
func (w *walker) operator(st *state, out []move) []move {
	for i := range w.m.Nodes {
		n := uint8(i)
		if l := st.nodes[n].list; l != knowsBoth && l != knowsNew {
			out = append(out, move{kind: tellBoth, node: n})
		}
		if st.switching && st.wait == 0 && newNodes.Has(i) && st.nodes[n].list != knowsNew {
			out = append(out, move{kind: tellNew, node: n})
		}
	}
	return out
}

func (w *walker) tell(st *state, mv move) {
	if mv.kind == tellNew {
		st.nodes[mv.node].list = knowsNew
		return
	}
	st.nodes[mv.node].list = knowsBoth
	var told quorum.Set
	for n := range w.m.Nodes {
		if st.nodes[n].list == knowsBoth {
			told |= quorum.SetOf(n)
		}
	}
	cfg := quorum.Config{Nodes: w.m.Nodes, Sets: knowsBoth.sets()}
	if !st.switching && cfg.HasQuorum(told) {
		st.switching, st.wait = true, uint8(w.m.SwitchWait)
	}
}
