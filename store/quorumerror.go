package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Outcome is the result of one request at one node.
type Outcome uint8

// The outcomes. After Pending, Unreachable and TimedOut the node may or may not
// have applied the request.
const (
	// Pending means that the caller did not wait for the node's answer.
	Pending Outcome = iota
	// Granted means that the node did what was asked.
	Granted
	// Taken means that another owner holds the lock on the node.
	Taken
	// Absent means that nobody holds the lock on the node.
	Absent
	// Unreachable means that there was no connection, or that it broke.
	Unreachable
	// TimedOut means that the node did not answer within the node timeout.
	TimedOut
	// Quarantined means that the node may have forgotten leases and abstains.
	Quarantined
	// WrongType means that the lock's key holds something that is not a lock.
	WrongType
	// Refused means that the node answered with an error, such as not
	// authorised, out of memory or read-only.
	Refused
	// Loading means that the node is still loading its data.
	Loading
	// Unsettled means that the node's cluster is being reconfigured, or is
	// partly down. The request was not applied.
	Unsettled
)

var outcomeNames = [...]string{
	"no answer yet", "granted", "taken", "absent", "unreachable", "timed out",
	"quarantined", "wrong type", "refused", "loading", "unsettled",
}

// String returns the outcome in lower-case words, such as "timed out".
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", o)
}

// NodeOutcome is what one node of a store answered.
type NodeOutcome struct {
	// Node is the address of the node, without credentials.
	Node string
	// Outcome is the result of the request at this node.
	Outcome Outcome
	// Holder and ExpiresIn describe the lease of another owner when Outcome is
	// Taken. When it is Quarantined, ExpiresIn is the rest of the quarantine.
	Holder    Holder
	ExpiresIn time.Duration
	// Err is what went wrong; nil for Granted, Taken and Absent.
	Err error
}

// Silent reports whether the node left open if it has a lease of the lock: it gave no answer,
// or answered with an error.
func (n NodeOutcome) Silent() bool {
	switch n.Outcome {
	case Granted, Taken, Absent, Quarantined, WrongType:
		return false
	}
	return true
}

// Silent names the nodes that are silent, and why, in words such as "no answer from
// 10.0.0.3:6379 (timed out)". It is empty if none is.
func Silent(nodes []NodeOutcome) string {
	var silent []string
	for _, n := range nodes {
		if n.Silent() {
			silent = append(silent, fmt.Sprintf("%s (%s)", n.Node, n.Outcome))
		}
	}
	if len(silent) == 0 {
		return ""
	}
	return "no answer from " + strings.Join(silent, ", ")
}

// String describes the outcome in one line, with the address of the node first. The error of a
// node that cannot be used says more than the outcome, and stands for it.
func (n NodeOutcome) String() string {
	switch {
	case n.Err != nil && (n.Outcome == Unreachable || n.Outcome == Refused):
		return fmt.Sprintf("%s: %v", n.Node, Cause(n.Err))
	case n.Err != nil:
		return fmt.Sprintf("%s: %s: %v", n.Node, n.Outcome, Cause(n.Err))
	case n.Outcome == Taken:
		return fmt.Sprintf("%s: taken by %s", n.Node, n.Holder)
	}
	return fmt.Sprintf("%s: %s", n.Node, n.Outcome)
}

// QuorumError reports that too few nodes gave the answer that was needed, and
// what each node answered. Stores with one node use it too, with Need set to 1.
type QuorumError struct {
	// Op is the operation that failed, such as "acquire", "renew", "release",
	// "inspect", "list" or "open".
	Op string
	// Name is the name of the lock. It is empty if Op is not about one lock.
	Name string
	// Store is the kind of store, such as "redis". It may be empty, and begins the text if Op is
	// not about one lock.
	Store string
	// Need is the number of nodes that had to agree.
	Need int
	// Nodes has one entry for each node.
	Nodes []NodeOutcome
}

func (e *QuorumError) Error() string {
	var b strings.Builder
	if len(e.Nodes) == 1 {
		b.WriteString(e.single())
	} else {
		b.WriteString(e.Summary())
		for i, n := range e.Nodes {
			b.WriteString([]string{": ", "; "}[min(i, 1)] + e.Describe(n))
		}
	}
	if hint := e.Hint(); hint != "" {
		b.WriteString("; " + hint)
	}
	return b.String()
}

// about says what the error is about: a lock, or a store.
func (e *QuorumError) about() string {
	switch {
	case e.Name != "":
		return fmt.Sprintf("%s %q", e.Op, e.Name)
	case e.Store != "":
		return e.Store
	}
	return e.Op
}

// single is the text about a store with one node.
func (e *QuorumError) single() string {
	about, node := e.about(), e.Describe(e.Nodes[0])
	switch {
	case about == e.Op || e.Name != "":
		return about + ": " + node
	case strings.HasPrefix(node, about):
		return node
	}
	return about + " " + node
}

// Summary says how many nodes answered and how many had to, such as "redis: 2 of 5 servers
// answered, 3 are needed". It is the beginning of the text of an error about several nodes.
func (e *QuorumError) Summary() string {
	n, did := e.Count(Granted)+e.Count(Taken)+e.Count(Absent), "answered"
	switch {
	case n >= e.Need:
		n, did = e.Count(Granted), "agreed"
	case e.Count(Quarantined)+e.Count(WrongType)+e.Count(Refused)+e.Count(Loading)+e.Count(Unsettled) > 0:
		did = "can take part"
	}
	are := "are"
	if e.Need == 1 {
		are = "is"
	}
	return fmt.Sprintf("%s: %d of %d servers %s, %d %s needed", e.about(), n, len(e.Nodes), did, e.Need, are)
}

// Describe describes what one of Nodes answered, in one line that begins with its address.
func (e *QuorumError) Describe(n NodeOutcome) string {
	if n.Err == nil && (n.Outcome == Granted || n.Outcome == Absent && e.Op == "list") {
		switch e.Op {
		case "acquire":
		case "open", "inspect", "list":
			return n.Node + ": answered"
		default:
			return n.Node + ": done"
		}
	}
	return n.String()
}

// Hint says what ends the error sooner, or is empty.
func (e *QuorumError) Hint() string {
	if _, ok := e.OpensIn(); ok && e.EndsAlone() == nil {
		return "if it is certain that nobody holds a lock, redisadmin.Bootstrap (or the command leasehold bootstrap) ends the quarantine at once"
	}
	return ""
}

// EndsAlone returns why a node is in quarantine, if nobody can end that quarantine earlier, and
// otherwise nil. The error of such a node has a method EndsAlone.
func (e *QuorumError) EndsAlone() error {
	var alone interface {
		error
		EndsAlone()
	}
	if errors.As(errors.Join(e.Unwrap()...), &alone) {
		return alone
	}
	return nil
}

// Is reports whether e matches target. It always matches ErrQuorum. It matches
// ErrKindMismatch if a node found something that is not a lock, and ErrAmbiguous
// if a node may have done what was asked without confirming it.
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

// Unwrap returns the errors of the nodes.
func (e *QuorumError) Unwrap() []error {
	var errs []error
	for _, n := range e.Nodes {
		if n.Err != nil {
			errs = append(errs, n.Err)
		}
	}
	return errs
}

// Count returns the number of nodes with outcome o.
func (e *QuorumError) Count(o Outcome) int {
	c := 0
	for _, n := range e.Nodes {
		if n.Outcome == o {
			c++
		}
	}
	return c
}

// OpensIn returns the time until enough nodes have left quarantine to form a
// quorum. It returns false if quarantine is not what prevents the quorum.
func (e *QuorumError) OpensIn() (time.Duration, bool) {
	var waits []time.Duration // of the nodes that answer now or after quarantine
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

// Transient reports whether waiting can help. It returns false if so many nodes
// answered WrongType or Refused, which only a person can mend, that the others
// cannot form a quorum.
func (e *QuorumError) Transient() bool {
	return len(e.Nodes)-e.Count(WrongType)-e.Count(Refused) >= e.Need
}
