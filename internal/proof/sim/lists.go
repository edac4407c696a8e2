package sim

import (
	"slices"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
)

// list is which nodes a client asks: one list, or two while one is being
// replaced by the other. A node is told, by the first client and then by the
// operator, which it is part of.
type list uint8

const (
	anyList  list = iota // nobody has said
	oldList              // nodes 1, 2, 3
	bothList             // a majority of each
	newList              // nodes 1, 2, 4
)

var lists = []list{bothList, oldList, newList}

// join has a client ask its list only.
func (l list) join(k *driver.Driver) {
	switch l {
	case oldList:
		k.Nodes = k.Nodes[:3]
	case newList:
		k.Nodes = slices.Delete(k.Nodes, 2, 3)
		k.Nodes[2].(*link).at = 2
	default:
		k.Sets = [2]quorum.Set{quorum.SetOf(0, 1, 2), quorum.SetOf(0, 1, 3)}
	}
	if k.Clocks != nil {
		k.Clocks = nil // the nodes that it numbers are not all there
	}
}

// admits says whether a node that is told of l serves a client that asks by.
func (l list) admits(by list) bool {
	return l == anyList || l == by || by == bothList
}

// switchLists is what the operator does when every client is to know both
// lists: those that know only the old one are shut out, then as long is waited
// as they may have leases, and then those that know only the new one are let in.
func (w *world) switchLists() {
	for _, n := range w.nodes {
		n.list = bothList
	}
	w.after(w.quarantine(), outside, func() {
		for _, n := range w.nodes {
			if n.index != 2 {
				n.list = newList
			}
		}
		w.hist.say("the new list is in force")
	})
}
