package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// In a world with Lists, one list of nodes is replaced by another: of four nodes, 1,2,3
// by 1,2,4. The client of an attempt knows the old list, both, or the new one. A node
// keeps the list that it was notified of, and serves the clients that it admits. Requests
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

// admits reports whether a node that was notified of r serves a client in role by.
func (r role) admits(by role) bool { return r == nobodySaid || r == by || by == knowsBoth }

// freshFor returns the first value for an attempt or vote of a client in that role.
func freshFor(r role) machine { return fresh + machine(max(r, knowsOld)-knowsOld) }
