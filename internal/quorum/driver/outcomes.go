package driver

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// witness is what evidence asks a quorum machine.
type nodeStatus interface {
	Late(node int) bool
	Agreed(node int) bool
}

// evidence completes what the nodes said by what the machine knows of them:
// plain agreement is not written down, and silence can not be.
func (k *Driver) describe(said []store.NodeOutcome, m nodeStatus) []store.NodeOutcome {
	nodes := make([]store.NodeOutcome, len(k.Nodes))
	copy(nodes, said)
	for i := range nodes {
		n := &nodes[i]
		n.Node = k.Nodes[i].Addr()
		switch {
		case n.Outcome != store.Pending:
		case m.Agreed(i):
			n.Outcome = store.Granted
		case m.Late(i):
			n.Outcome, n.Err = store.TimedOut, fmt.Errorf("no answer in time")
		}
	}
	return nodes
}

// BusyError says who keeps us from a majority, nil if nobody does: when so many
// nodes are away that there is none to be had, being held is not the reason.
// ExpiresIn is when a majority of the nodes can be free, if nobody renews, as
// far as their answers were waited for.
func newBusyError(name string, nodes []store.NodeOutcome, need int) *store.BusyError {
	var free []time.Duration
	var holder store.Holder
	most, away := 0, 0
	for i, n := range nodes {
		switch n.Outcome {
		case store.Granted:
			free = append(free, 0)
		case store.Taken:
			if n.ExpiresIn >= 0 {
				free = append(free, n.ExpiresIn)
			}
			count := 0
			for _, m := range nodes[i:] {
				if m.Outcome == store.Taken && m.Holder.Owner == n.Holder.Owner {
					count++
				}
			}
			if count > most {
				most, holder = count, n.Holder
			}
		case store.Pending, store.Absent:
		default:
			away++
		}
	}
	if most == 0 || len(nodes)-away < need {
		return nil
	}
	e := &store.BusyError{Name: name, Holder: holder, ExpiresIn: -1}
	if slices.Sort(free); len(free) > 0 {
		e.ExpiresIn = free[min(need, len(free))-1]
	}
	if len(nodes) > 1 {
		e.Nodes = nodes
	}
	return e
}
