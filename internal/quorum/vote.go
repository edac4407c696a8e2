package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// Vote asks all nodes to extend or to release one lease. What a yes means is
// the same for both: the node did it; a no: the lease is not there. It is over
// as soon as a majority said yes, or so many said no that the lease can not
// have been on a majority. Releasing is content with a majority that is without
// the lease, whoever removed it: others can have the lock then. (Of an even
// number, half that said no are enough for the one and not for the other.)
//
// Once a majority has extended the lease, nodes that have lost it, or never had
// it, are given it: while it is valid nobody else can have a majority, and so
// long holds outlive the restarts of nodes, one after the other. What a node is
// given counts from the next renewal on, when it says itself that it has it.
type Vote struct {
	Config
	op      Op
	by      clock.Instant
	verdict Verdict
	late    bool
	nodes   [MaxNodes]Phase
	free    Set // nodes where nobody has the lock, and that were not given it yet
}

// NewVote begins a vote whose requests leave after start. op is Extend or
// Release. The driver sends it to every node, and then what Step says.
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

// give sends the lease to the nodes that are without it.
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
	switch {
	case v.HasQuorum(yes), releasing && v.HasQuorum(yes|no) && (v.Gone() || hoped == 0):
		v.verdict = Won
	case !v.HasQuorum(yes|hoped) && (!releasing || !v.HasQuorum(yes|no|hoped)):
		v.verdict = Lost
	}
}

// in are the nodes in a phase.
func (v *Vote) nodesIn(p Phase) (s Set) {
	for i, q := range v.nodes[:v.Nodes] {
		if q == p {
			s = s.with(i)
		}
	}
	return s
}

// Verdict is how the vote stands.
func (v *Vote) Verdict() Verdict { return v.verdict }

// Gone says whether the lease is certainly not ours any more: so many nodes do
// not have it that a majority can not.
func (v *Vote) Gone() bool { return !v.HasQuorum(v.all() &^ v.nodesIn(Refused)) }

// Late says whether node's answer had not come within the node timeout.
func (v *Vote) Late(node int) bool { return v.late && v.nodes[node] == Asked }

// Agreed says whether node did what was asked.
func (v *Vote) Agreed(node int) bool { return v.nodes[node] == Held }

// Next is when a Tick can change something; false when none can.
func (v *Vote) Next() (clock.Instant, bool) { return v.by, v.verdict == Open && !v.late }
