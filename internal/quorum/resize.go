package quorum

import "github.com/leasehold-dev/leasehold/internal/clock"

// Resize changes the number of permits of a semaphore at all nodes, in two phases: all nodes
// give it the seat, and then all set the number. It is won if all of them have done so within
// the node timeout of each phase. Otherwise it is lost, as soon as all have answered or the
// time is over: the more answers there are, the more its error can say.
//
// A resize that was lost in the second phase may have worked, or may have given some of the
// nodes the number; see MayHave. internal/proof/resize says why this is enough.
type Resize struct {
	Config
	setting bool // the second phase
	by      clock.Instant
	verdict Verdict
	late    bool
	nodes   [MaxNodes]Phase // of the phase
}

// NewResize begins a resize whose requests leave after start. The driver sends TakeSeat to
// every node, and then what Step returns.
func NewResize(c Config, start clock.Instant) Resize {
	return Resize{Config: c, by: start.Add(c.NodeTimeout)}
}

// Step applies one event and appends to out the messages to send. Answers that come after the
// verdict change no more than what is known of the node.
func (z *Resize) Step(e Event, now clock.Instant, out []Send) []Send {
	switch {
	case e.Kind == Tick:
	case e.Kind == Cancel:
		z.late = true
	case (e.Op == SetNumber) == z.setting && z.nodes[e.Node] == Asked:
		switch e.Kind {
		case Yes:
			z.nodes[e.Node] = Held
		case Unsent:
			z.nodes[e.Node] = Missing
		case Unknown:
			z.nodes[e.Node] = Doubtful
		default:
			z.nodes[e.Node] = Refused
		}
	}
	if z.verdict != Open {
		return out
	}
	z.late = z.late || now >= z.by && timely
	nodes := z.nodes[:z.Nodes]
	did, asked := nodesIn(nodes, Held), nodesIn(nodes, Asked)
	switch {
	case z.late, asked == 0 && did != z.all() && (setOnAll || !z.HasQuorum(did)):
		z.verdict = Lost
	case did != z.all() && (setOnAll || !z.HasQuorum(did)):
	case z.setting:
		z.verdict = Won
	default:
		z.setting, z.by, z.nodes = true, now.Add(z.NodeTimeout), [MaxNodes]Phase{}
		for i := range z.Nodes {
			out = append(out, Send{Node: i, Op: SetNumber})
		}
	}
	return out
}

// Verdict returns the outcome, or Open.
func (z *Resize) Verdict() Verdict { return z.verdict }

// MayHave returns the nodes that have set the number, or may have, or may yet.
func (z *Resize) MayHave() Set {
	if !z.setting {
		return 0
	}
	nodes := z.nodes[:z.Nodes]
	return nodesIn(nodes, Held) | nodesIn(nodes, Doubtful) | nodesIn(nodes, Asked)
}

// Late reports whether the node missed its node timeout.
func (z *Resize) Late(node int) bool { return z.late && z.nodes[node] == Asked }

// Agreed reports whether the node did what it was asked last.
func (z *Resize) Agreed(node int) bool { return z.nodes[node] == Held }

// Next returns when a Tick can change something; false if none can.
func (z *Resize) Next() (clock.Instant, bool) { return z.by, z.verdict == Open }
