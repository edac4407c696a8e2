package store

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is what one node had to say to one request.
type Outcome uint8

// The outcomes. Unknown ones (Unreachable after sending, TimedOut) may have
// been applied.
const (
	// Pending: the answer was not waited for.
	Pending Outcome = iota
	// Granted: the node did what was asked.
	Granted
	// Taken: somebody else holds the lock there.
	Taken
	// Absent: nobody holds the lock there.
	Absent
	// Unreachable: no connection, or it broke.
	Unreachable
	// TimedOut: no answer within the node timeout.
	TimedOut
	// Quarantined: the node may have forgotten leases and abstains.
	Quarantined
	// WrongType: the key holds something that is not a lock.
	WrongType
	// Refused: the node answered with an error: not authorised, out of
	// memory, read-only, and the like.
	Refused
	// Loading: the node is still reading its data.
	Loading
	// Unsettled: the node's cluster is just being changed, or a part of it is down. The
	// request was not applied.
	Unsettled
)

var outcomeNames = [...]string{
	"no answer yet", "granted", "taken", "absent", "unreachable", "timed out",
	"quarantined", "wrong type", "refused", "loading", "unsettled",
}

func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", o)
}

// NodeOutcome is the evidence of one node.
type NodeOutcome struct {
	// Node is its address, without credentials.
	Node    string
	Outcome Outcome
	// Holder and ExpiresIn are set when Taken. When Quarantined, ExpiresIn is
	// how long the node stays out.
	Holder    Holder
	ExpiresIn time.Duration
	// Err is what went wrong, nil for Granted, Taken and Absent.
	Err error
}

func (n NodeOutcome) String() string {
	switch {
	case n.Err != nil:
		return fmt.Sprintf("%s: %s: %v", n.Node, n.Outcome, n.Err)
	case n.Outcome == Taken:
		return fmt.Sprintf("%s: taken by %s", n.Node, n.Holder)
	}
	return fmt.Sprintf("%s: %s", n.Node, n.Outcome)
}

// QuorumError says that a majority was out of reach, and what each node said.
type QuorumError struct {
	// Op is what was tried: "acquire", "renew", "release", "open", "inspect".
	Op string
	// Name of the lock, empty for "open".
	Name string
	// Need is how many nodes had to agree.
	Need  int
	Nodes []NodeOutcome
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Name != "" {
		fmt.Fprintf(&b, " %q", e.Name)
	}
	if len(e.Nodes) == 1 {
		fmt.Fprintf(&b, ": %s", e.Nodes[0])
		return b.String()
	}
	fmt.Fprintf(&b, ": no quorum: %d of %d nodes needed", e.Need, len(e.Nodes))
	for _, n := range e.Nodes {
		fmt.Fprintf(&b, "; %s", n)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrQuorum) true, ErrKindMismatch when a node found
// something that is not a lock, and ErrAmbiguous when a node may have done
// what was asked without saying so.
func (e *QuorumError) Is(target error) bool {
	switch target {
	case ErrQuorum:
		return true
	case ErrKindMismatch:
		return e.Count(WrongType) > 0
	case ErrAmbiguous:
		return e.Count(TimedOut)+e.Count(Unreachable)+e.Count(Pending) > 0
	}
	return false
}

// Unwrap gives the nodes' errors to errors.Is and errors.As.
func (e *QuorumError) Unwrap() []error {
	var errs []error
	for _, n := range e.Nodes {
		if n.Err != nil {
			errs = append(errs, n.Err)
		}
	}
	return errs
}

// Count is how many nodes had outcome o.
func (e *QuorumError) Count(o Outcome) int {
	c := 0
	for _, n := range e.Nodes {
		if n.Outcome == o {
			c++
		}
	}
	return c
}

// OpensIn is after what time enough nodes for a majority are out of quarantine,
// if that is what keeps them from answering; otherwise false.
func (e *QuorumError) OpensIn() (time.Duration, bool) {
	var waits []time.Duration // of the nodes that answer, or will
	for _, n := range e.Nodes {
		switch n.Outcome {
		case Quarantined:
			waits = append(waits, n.ExpiresIn)
		case Granted, Taken, Absent, Pending:
			waits = append(waits, 0)
		}
	}
	if e.Count(Quarantined) == 0 || len(waits) < e.Need {
		return 0, false
	}
	slices.Sort(waits)
	d := waits[e.Need-1]
	return d, d > 0
}

// Transient says whether waiting can help: enough nodes for a majority were
// reached, held up by another client, or may come back; as opposed to nodes
// that refuse us for a reason a person has to remove.
func (e *QuorumError) Transient() bool {
	return len(e.Nodes)-e.Count(WrongType)-e.Count(Refused) >= e.Need
}
