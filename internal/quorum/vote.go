package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// Vote asks all nodes to extend or to release one lease. Yes means that the node did
// it, No that the lease is not there. The vote is over as soon as a majority said yes, or
// so many said no that the lease cannot be on a majority. A release is also won when a
// majority is without the lease, whatever removed it: others can have the lock then. (Of
// an even number of nodes, half that said no end the lease but do not free the lock.)
//
// Once a majority has extended the lease, the vote heals nodes that lost it or never had
// it. No other owner can have a majority while the lease is valid, so a long hold
// survives the restart of one node after the other. A healed node counts from the next
// renewal on, when it answers for itself.
type Vote struct {
	Config
	op      Op
	by      clock.Instant
	verdict Verdict
	late    bool
	nodes   [MaxNodes]Phase
	free    Set // nodes where the lock is free and that were not healed yet
}

// NewVote begins a vote whose requests leave after start. op is Extend or
// Release. The driver sends it to every node, and then what Step returns.
func NewVote(c Config, op Op, start clock.Instant) Vote {
	return Vote{Config: c, op: op, by: start.Add(c.NodeTimeout)}
}

// Step applies one event and appends to out the messages to send.
func (v *Vote) Step(e Event, now clock.Instant, out []Send) []Send {
	switch e.Kind {
	case Tick:
	case Cancel:
		v.late = true
	case Yes:
		v.nodes[e.Node] = Held
	case No:
		v.nodes[e.Node] = Refused
	case Absent:
		v.nodes[e.Node] = Refused
		v.free = v.free.with(e.Node)
	case Unsent:
		v.nodes[e.Node] = Missing
	case Unknown:
		v.nodes[e.Node] = Doubtful
	}
	v.late = v.late || now >= v.by
	if v.verdict == Open {
		v.decide()
	}
	if v.op == Extend && v.verdict == Won && v.free != 0 && heal {
		out = v.heal(out)
	}
	return out
}

// heal sends the lease to the nodes where the lock is free.
func (v *Vote) heal(out []Send) []Send {
	for i := range v.Nodes {
		if v.free.Has(i) {
			out = append(out, Send{Node: i, Op: Heal})
		}
	}
	v.free = 0
	return out
}

func (v *Vote) decide() {
	yes, no, hoped := v.nodesIn(Held), v.nodesIn(Refused), Set(0)
	if !v.late {
		hoped = v.nodesIn(Asked)
	}
	releasing := v.op == Release
	freed := v.HasQuorum(yes|no) || !freeOnMost && v.Gone()
	won, may := v.HasQuorum(yes), v.HasQuorum(yes|hoped)
	switch {
	case won, releasing && freed && (v.Gone() || hoped == 0):
		v.verdict = Won
	case !may && (!releasing || !v.HasQuorum(yes|no|hoped)):
		v.verdict = Lost
	}
}

// nodesIn returns the nodes in a phase.
func (v *Vote) nodesIn(p Phase) Set { return nodesIn(v.nodes[:v.Nodes], p) }

// nodesIn returns those of nodes that are in a phase.
func nodesIn(nodes []Phase, p Phase) (s Set) {
	for i, q := range nodes {
		if q == p {
			s = s.with(i)
		}
	}
	return s
}

// Verdict returns the outcome, or Open.
func (v *Vote) Verdict() Verdict { return v.verdict }

// Gone reports whether the lease has certainly ended: so many nodes are without it
// that a majority cannot have it.
func (v *Vote) Gone() bool { return !v.HasQuorum(v.all() &^ v.nodesIn(Refused)) }

// Late reports whether the node missed its node timeout.
func (v *Vote) Late(node int) bool { return v.late && v.nodes[node] == Asked }

// Agreed reports whether the node did what was asked.
func (v *Vote) Agreed(node int) bool { return v.nodes[node] == Held }

// Next returns when a Tick can change something; false if none can.
func (v *Vote) Next() (clock.Instant, bool) { return v.by, v.verdict == Open && !v.late }
