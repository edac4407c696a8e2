package explore

import (
	"sync"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// machines has all values met so far. The workers of a search share it.
//
// The time axis of an attempt and its lease begins at epoch when the attempt
// does, that of a vote when the vote does; production code only ever looks at
// differences.
type machines struct {
	m        *Model
	mu       sync.Mutex
	attempts interned[quorum.Attempt]
	votes    interned[quorum.Vote]
	leases   interned[leasefsm.Lease]
	healing  bool // renewals give the lease to nodes that do not have it
}

// interned numbers values from 1.
type interned[T comparable] struct {
	ids    map[T]machine
	values []T
	births []birth
}

// birth is the step that first led to a value.
type birth struct {
	parent machine // 0: none
	event  quorum.Event
	age    uint8
}

func newMachines(m *Model) *machines {
	ms := &machines{m: m}
	roles := []role{nobodySaid}
	if m.Lists {
		roles = []role{knowsOld, knowsBoth, knowsNew}
	}
	for _, r := range roles { // numbered as freshFor says
		cfg := m.quorum()
		cfg.Sets = r.sets()
		if m.Waits {
			ms.attempts.add(quorum.NewWait(cfg, ticks(m.TTL), epoch, false), birth{})
			ms.attempts.add(quorum.NewWait(cfg, ticks(m.TTL), epoch, true), birth{})
		} else {
			ms.attempts.add(quorum.NewAttempt(cfg, ticks(m.TTL), epoch), birth{})
		}
		ms.votes.add(quorum.NewVote(cfg, quorum.Extend, epoch), birth{})
	}
	if m.hasBeside() { // numbered as freshBeside says
		ms.votes.add(quorum.NewVote(m.quorum(), quorum.Release, epoch), birth{})
	}
	ms.leases.add(leasefsm.New(m.lease()), birth{})
	ms.healing = m.Renewals+m.Extends > 0 && m.probeHeal()
	return ms
}

// probeHeal asks the production code whether it gives the lease to a node that lacks it
// after all others have renewed.
func (m *Model) probeHeal() bool {
	v := quorum.NewVote(m.quorum(), quorum.Extend, epoch)
	for n := 1; n < m.Nodes; n++ {
		v.Step(quorum.Event{Kind: quorum.Yes, Node: n}, epoch, nil)
	}
	return len(v.Step(quorum.Event{Kind: quorum.Absent}, epoch, nil)) > 0
}

// add returns v's number. The caller holds the mutex, or is the only user.
func (in *interned[T]) add(v T, b birth) machine {
	if id, ok := in.ids[v]; ok {
		return id
	}
	if in.ids == nil {
		in.ids = map[T]machine{}
		in.values = make([]T, 1)
		in.births = make([]birth, 1)
	}
	id := machine(len(in.values))
	in.ids[v] = id
	in.values = append(in.values, v)
	in.births = append(in.births, b)
	return id
}

// driver steps machines for one worker and remembers the results: a step is a function
// of its arguments, so the production code runs once for each.
type driver struct {
	*machines
	seenAttempts view[quorum.Attempt]
	seenVotes    view[quorum.Vote]
	seenLeases   view[leasefsm.Lease]

	attemptSteps map[stepKey]*attemptStep
	voteSteps    map[stepKey]*voteStep
	leaseSteps   map[leaseKey]machine
	losts        map[machine]bool    // whether attempts equal the lost one that represents them
	lostBy       map[uint8]machine   // the lost attempt that waits for these nodes
	turned       map[uint64]machine  // machines with their nodes permuted
	marks        map[machine]*marked // attempts
	voteMarks    map[machine]*marked // votes
}

func (ms *machines) driver() *driver {
	return &driver{
		machines:     ms,
		attemptSteps: map[stepKey]*attemptStep{},
		voteSteps:    map[stepKey]*voteStep{},
		leaseSteps:   map[leaseKey]machine{},
		losts:        map[machine]bool{},
		lostBy:       map[uint8]machine{},
		turned:       map[uint64]machine{},
		marks:        map[machine]*marked{},
		voteMarks:    map[machine]*marked{},
	}
}

// view is a worker's copy of the values, to which values are only ever added.
type view[T comparable] struct{ values []T }

func (v *view[T]) at(id machine, ms *machines, in *interned[T]) *T {
	if int(id) >= len(v.values) {
		ms.mu.Lock()
		v.values = in.values
		ms.mu.Unlock()
	}
	return &v.values[id]
}

func (d *driver) attempt(id machine) *quorum.Attempt {
	return d.seenAttempts.at(id, d.machines, &d.attempts)
}

func (d *driver) vote(id machine) *quorum.Vote {
	return d.seenVotes.at(id, d.machines, &d.votes)
}

func (d *driver) lease(id machine) *leasefsm.Lease {
	return d.seenLeases.at(id, d.machines, &d.leases)
}

func at(age uint8) clock.Instant { return epoch.Add(ticks(int(age))) }

type stepKey struct {
	id    machine
	event quorum.Event
	age   uint8
}

// attemptStep is the result of a step of an attempt.
type attemptStep struct {
	next     machine
	verdict  quorum.Verdict
	token    uint64
	from     clock.Instant
	repeated bool
	slots    string
	gaveWay  bool
	// gave way to the next waiters: its successor comes last
	handedOver bool
	sends      []quorum.Send
}

func (d *driver) stepAttempt(id machine, e quorum.Event, age uint8) *attemptStep {
	key := stepKey{id, e, age}
	if s := d.attemptSteps[key]; s != nil {
		return s
	}
	a := *d.attempt(id)
	sends := a.Step(e, at(age), nil)
	d.mu.Lock()
	next := d.attempts.add(a, birth{id, e, age})
	d.mu.Unlock()
	s := &attemptStep{next: next, verdict: a.Verdict(), token: a.Token(), from: a.From(), repeated: a.Repeated(), slots: a.Slots(), gaveWay: a.GaveWay(), handedOver: a.HandedOver(), sends: sends}
	d.attemptSteps[key] = s
	return s
}

// voteStep is the result of a step of a vote.
type voteStep struct {
	next  machine
	sends []quorum.Send
}

func (d *driver) stepVote(id machine, e quorum.Event, age uint8) *voteStep {
	key := stepKey{id, e, age}
	if s := d.voteSteps[key]; s != nil {
		return s
	}
	v := *d.vote(id)
	sends := v.Step(e, at(age), nil)
	d.mu.Lock()
	next := d.votes.add(v, birth{id, e, age})
	d.mu.Unlock()
	s := &voteStep{next, sends}
	d.voteSteps[key] = s
	return s
}

type leaseKey struct {
	id         machine
	event      leasefsm.Event
	start, now clock.Instant
}

func (d *driver) stepLease(id machine, e leasefsm.Event, start, now clock.Instant) machine {
	key := leaseKey{id, e, start, now}
	if next, ok := d.leaseSteps[key]; ok {
		return next
	}
	l := d.lease(id).Step(e, start, now)
	d.mu.Lock()
	next := d.leases.add(l, birth{})
	d.mu.Unlock()
	d.leaseSteps[key] = next
	return next
}

// everyAnswer has every answer that a node can give to an acquire, and its absence.
var everyAnswer = []quorum.Event{
	{Kind: quorum.Yes, Token: 1}, {Kind: quorum.No}, {Kind: quorum.Absent}, {Kind: quorum.Unsent}, {Kind: quorum.Unknown},
}

// asLost returns the lost attempt that represents all which still wait for the acquires
// of those nodes, if earlier answers make no difference any more. It tests that with
// the production code, for every attempt and every answer.
func (d *driver) asLost(id machine, age, waiting uint8) machine {
	canonical, ok := d.lostBy[waiting] // which list does not matter any more
	if !ok {
		canonical = fresh
		for n := range d.m.Nodes {
			if waiting&(1<<n) == 0 {
				canonical = d.stepAttempt(canonical, quorum.Event{Kind: quorum.No, Node: n}, 0).next
			}
		}
		canonical = d.stepAttempt(canonical, quorum.Event{Kind: quorum.Cancel}, 0).next
		d.lostBy[waiting] = canonical
	}
	if id == canonical {
		return canonical
	}
	same, known := d.losts[id]
	if !known {
		same = d.sameLost(id, canonical, age, waiting)
		d.losts[id] = same
	}
	if !same {
		return id
	}
	return canonical
}

// sameLost reports whether two lost attempts send the same, whatever they hear.
func (d *driver) sameLost(id, canonical machine, age, waiting uint8) bool {
	for n := range d.m.Nodes {
		for _, e := range everyAnswer {
			e.Node = n
			if waiting&(1<<n) != 0 && !sameSends(d.stepAttempt(id, e, age).sends, d.stepAttempt(canonical, e, age).sends) {
				return false
			}
		}
	}
	for _, e := range []quorum.Event{{Kind: quorum.Tick}, {Kind: quorum.Cancel}} {
		if len(d.stepAttempt(id, e, age).sends) > 0 {
			return false
		}
	}
	return true
}

func sameSends(a, b []quorum.Send) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// valid reports whether a held lease may be trusted at present.
func (d *driver) valid(s *slot) bool { return d.lease(s.machine).Valid(at(s.age)) }
