package explore

import "github.com/leasehold-dev/leasehold/internal/quorum"

// turning is a permutation of nodes: the node n becomes turning[n].
type turning [maxNodes]uint8

func (t turning) code() (c uint64) {
	for i, p := range t {
		c |= uint64(p) << (3 * i)
	}
	return c
}

// turnAttempt is the attempt with its nodes permuted. The machine is opaque, so
// this takes the same steps as led to it, with the nodes of their events
// permuted. That production code treats all nodes alike is checked by a test.
func (d *driver) turnAttempt(id machine, t turning) machine {
	if id <= fresh {
		return id
	}
	key := uint64(id)<<16 | t.code()
	if turned, ok := d.turned[key]; ok {
		return turned
	}
	d.mu.Lock()
	b := d.attempts.births[id]
	d.mu.Unlock()
	if b.parent == 0 {
		return id
	}
	b.event.Node = turned(b.event, t)
	next := d.stepAttempt(d.turnAttempt(b.parent, t), b.event, b.age).next
	d.turned[key] = next
	return next
}

// turnVote is the same for votes.
func (d *driver) turnVote(id machine, t turning) machine {
	if id <= fresh {
		return id
	}
	key := uint64(id)<<16 | t.code() | 1<<15
	if turned, ok := d.turned[key]; ok {
		return turned
	}
	d.mu.Lock()
	b := d.votes.births[id]
	d.mu.Unlock()
	if b.parent == 0 {
		return id
	}
	b.event.Node = turned(b.event, t)
	next := d.stepVote(d.turnVote(b.parent, t), b.event, b.age).next
	d.turned[key] = next
	return next
}

func turned(e quorum.Event, t turning) int {
	if e.Kind == quorum.Tick || e.Kind == quorum.Cancel {
		return e.Node
	}
	return int(t[e.Node])
}

// marked tells a machine's nodes apart as far as permuting them can.
type marked struct {
	orbit machine // the same for every permutation of the machine
	node  [maxNodes]machine
}

// markAttempt marks an attempt.
func (d *driver) markAttempt(id machine) *marked {
	return d.mark(id, d.marks, d.turnAttempt)
}

func (d *driver) markVote(id machine) *marked {
	return d.mark(id, d.voteMarks, d.turnVote)
}

var noMarks marked

func (d *driver) mark(id machine, known map[machine]*marked, turn func(machine, turning) machine) *marked {
	if id <= fresh {
		return &noMarks
	}
	if mk := known[id]; mk != nil {
		return mk
	}
	mk := &marked{orbit: id}
	for i := range mk.node {
		mk.node[i] = ^machine(0)
	}
	for _, t := range turnings(d.m.Nodes) {
		to := turn(id, t)
		mk.orbit = min(mk.orbit, to)
		for n := range d.m.Nodes {
			if t[n] == 0 {
				mk.node[n] = min(mk.node[n], to)
			}
		}
	}
	known[id] = mk
	return mk
}

// turnings returns all permutations of n nodes.
func turnings(n int) []turning {
	var all []turning
	var t turning
	for i := range t {
		t[i] = uint8(i)
	}
	var place func(i int)
	place = func(i int) {
		if i == n {
			all = append(all, t)
			return
		}
		for j := i; j < n; j++ {
			t[i], t[j] = t[j], t[i]
			place(i + 1)
			t[i], t[j] = t[j], t[i]
		}
	}
	place(0)
	return all
}
