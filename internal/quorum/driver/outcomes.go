package driver

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// nodeStatus is what describe needs to know of a quorum machine.
type nodeStatus interface {
	Late(node int) bool
	Agreed(node int) bool
}

// describe completes the reports of the nodes by what the machine knows of them. Plain
// agreement is not reported, and silence cannot be.
func describe[P any](asked []Node[P], said []store.NodeOutcome, m nodeStatus) []store.NodeOutcome {
	nodes := make([]store.NodeOutcome, len(asked))
	copy(nodes, said)
	for i := range nodes {
		n := &nodes[i]
		n.Node = asked[i].Addr()
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

// newBusyError names the owner that has most of the nodes. It returns nil if no owner has
// any, or if so many nodes are away that a majority is impossible anyway. ExpiresIn is
// the time until a majority of the nodes can be free, if nothing is renewed, by the
// answers that arrived.
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
			count, h := 0, n.Holder
			for _, m := range nodes[i:] {
				if m.Outcome == store.Taken && m.Holder.Owner == h.Owner {
					count++
					h.Waiting = h.Waiting && m.Holder.Waiting // it may hold some of the nodes
				}
			}
			if count > most {
				most, holder = count, h
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

// kindErrorOf returns why a node keeps no lock of r's kind at present: the lock is in use
// there as another kind, or the owner has it with a smaller weight. It returns nil if no
// node said so. If nodes differ, it is what most of them said: a request for another kind that
// was refused may have been the first at a node.
func kindErrorOf(r store.Lease, nodes []store.NodeOutcome) error {
	var most *store.KindError
	votes := map[store.Kind]int{}
	for _, n := range nodes {
		if said, ok := errors.AsType[*store.KindError](n.Err); ok {
			votes[said.InUse]++
		}
	}
	for _, n := range nodes {
		if said, ok := errors.AsType[*store.KindError](n.Err); ok && (most == nil || votes[said.InUse] > votes[most.InUse]) {
			most = said
		}
	}
	switch {
	case most == nil:
		return nil
	case most.InUse == r.Kind.Normal():
		return store.HeavierError("acquire", r)
	}
	return &store.KindError{Name: r.Name, Asked: r.Kind, InUse: most.InUse, Holder: most.Holder}
}
