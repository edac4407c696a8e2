package modelnode

import (
	"errors"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
)

// The functions in this file do to a node's mark what the scripts arrive, setMembership and
// gate do. A nil mark means that the node has none. Instants are in microseconds.

// Newcomer is what a client tells a node about itself and the server when it connects.
type Newcomer struct {
	Print, List      string // its list of nodes
	Run, Replication string
	Promoted         bool  // the server was a replica once
	Quarantine       int64 // that the client asks for
	Wall             int64 // the client's wall clock
	Durable          string
	// Seen is the token of the last grant that the client has seen, and Counter the
	// value of the node's counter for that lock.
	Seen, Counter uint64
	// Joins says whether a node without a membership may become one of the client's
	// several: may or not. It is alone if the node is all that the client has.
	Joins string
	// Origin is that of the mark which the client saw at the address before, Ago earlier.
	Origin string
	Ago    int64
}

// Whose returns whose membership a mark names, for a client: ours, other or none.
func (c Newcomer) Whose(m *nodemark.Mark) string {
	now, next, _ := strings.Cut(c.Print, ">")
	first, _, _ := strings.Cut(c.List, ">")
	switch {
	case m == nil, m.Print == nodemark.Unknown:
		return "none"
	case m.Print == c.Print, m.Print == now, m.Print == next:
		return "ours"
	case strings.Contains(first, ",") && !strings.Contains(m.List, ","):
		return "none"
	}
	return "other"
}

// Rejects returns the number of the script's answer if the client changes nothing on a node:
// it belongs to others, another client uses it alone, or it may not become one of several.
func (c Newcomer) Rejects(m *nodemark.Mark, usedAlone bool) int {
	switch whose := c.Whose(m); {
	case whose == "other":
		return 4
	case whose == "ours" || c.Joins == "alone":
		return 0
	case usedAlone:
		return 6
	case c.Joins == "not":
		return 7
	}
	return 0
}

// Arrive returns the mark after a client connected, and how long the node is in
// quarantine.
func Arrive(before *nodemark.Mark, c Newcomer, now int64) (m nodemark.Mark, left int64) {
	m = nodemark.New()
	if before != nil {
		m = *before
	}
	switch {
	case c.Whose(&m) == "none":
		m.Print, _, _ = strings.Cut(c.Print, ">")
		m.List, _, _ = strings.Cut(c.List, ">")
	case m.Print == c.Print:
		m.List = c.List
	}
	grown := max(0, c.Quarantine-m.Longest)
	m.Longest += grown
	why := forgot(m, c, now)
	if before == nil {
		why = "empty"
	}
	switch {
	case why != "":
		m.Open, m.Why, m.Lengthened = false, why, false
		m.Opens, m.ClientOpens = now+m.Longest, c.Wall+m.Longest
		m.Durable, m.ClientDurable = 0, 0
	case !m.Open, grown > 0 && m.Opens > 0 && m.Why != nodemark.Declared:
		m.Opens, m.ClientOpens = min(m.Opens+grown, now+m.Longest), m.ClientOpens+grown
		if m.ClientOpens > c.Wall+m.Longest {
			m.ClientOpens = c.Wall + m.Longest
			if !m.Lengthened {
				m.Opens, m.Lengthened = now+m.Longest, true
			}
		}
		m.Open = now >= m.Opens && c.Wall >= m.ClientOpens
	}
	switch {
	case c.Durable == "always" && m.Durable == 0:
		m.Durable, m.ClientDurable = now, c.Wall
	case c.Durable == "never", c.Durable == "unknown":
		m.Durable, m.ClientDurable = 0, 0
	}
	if c.Run != nodemark.Unknown {
		if m.Origin == nodemark.Unknown || why != "" && m.Run != c.Run {
			m.Origin = nodemark.OriginOf(c.Run)
		}
		m.Run = c.Run
	}
	if c.Replication != nodemark.Unknown {
		m.Replication = c.Replication
	}
	if !m.Open {
		left = max(1, m.Opens-now, m.ClientOpens-c.Wall)
	}
	return m, left
}

// forgot returns why the node may have forgotten leases, empty if it has not.
func forgot(m nodemark.Mark, c Newcomer, now int64) string {
	known := func(id string) bool { return id != nodemark.Unknown }
	if !known(c.Run) {
		return ""
	}
	if why := lost(m, c, now); why != "" {
		return why
	}
	began := m.Opens - m.Longest
	if m.Why == nodemark.Declared {
		began = m.Opens
	}
	if known(m.Origin) && known(c.Origin) && m.Origin != c.Origin && began < now-c.Ago {
		return "returned"
	}
	return ""
}

// lost returns what shows that the data of the node is not all that it had.
func lost(m nodemark.Mark, c Newcomer, now int64) string {
	known := func(id string) bool { return id != nodemark.Unknown }
	switch {
	case m.Run == c.Run && (known(m.Replication) || m.Why != nodemark.Declared) && known(c.Replication) && m.Replication != c.Replication && c.Promoted:
		return "replaced"
	case m.Run == c.Run && m.Why != nodemark.Declared && c.Counter < c.Seen && int64(c.Seen) >= m.Opens-m.Longest:
		return "behind"
	case m.Run == c.Run:
		return ""
	case c.Promoted:
		return "replaced"
	}
	long := m.Durable > 0 && now-m.Durable >= m.Longest && c.Wall-m.ClientDurable >= m.Longest
	if long && (c.Durable == "always" || c.Durable == "asserted") && c.Counter >= c.Seen {
		return ""
	}
	return "restarted"
}

// Entrance is what a client that wants a lock knows about a node.
type Entrance struct {
	Print    string
	Run      string // or how it begins; dashes: not known
	Counting bool   // the client counts a quarantine of its own
}

// Barrier is why a node grants nothing to a client.
type Barrier uint8

// The barriers, as numbered in the scripts' answers.
const (
	None         Barrier = 0
	Quarantine   Barrier = 3
	OtherList    Barrier = 4
	OtherVersion Barrier = 5
)

// Refusal is a node's answer to a client that it grants nothing.
type Refusal struct {
	Barrier Barrier
	// Why it is in quarantine, or its list of nodes, or the version of its mark.
	Why  string
	Left int64 // of the quarantine
}

// Gate returns why a node grants a client nothing; the zero Refusal if it does. text is
// its mark, empty for none.
func Gate(text string, e Entrance, now int64) Refusal {
	if text == "" {
		return Refusal{Quarantine, "emptied", 1}
	}
	m, err := nodemark.Parse(text)
	if err != nil {
		return Refusal{Barrier: OtherVersion, Why: Version(err)}
	}
	first, second, _ := strings.Cut(e.Print, ">")
	switch {
	case m.Print != nodemark.Unknown && m.Print != e.Print && m.Print != first && m.Print != second:
		return Refusal{Barrier: OtherList, Why: m.List}
	case m.Run != nodemark.Unknown && e.Run[0] != '-' && !strings.HasPrefix(m.Run, e.Run):
		return Refusal{Quarantine, "replaced", 1}
	case !m.Open:
		return Refusal{Quarantine, m.Why, max(1, m.Opens-now)}
	case e.Counting && m.Why != nodemark.Declared:
		return Refusal{Quarantine, m.Why, 1}
	}
	return Refusal{}
}

// Version returns the version that a mark is of, from the error of parsing it.
func Version(err error) string {
	var other *nodemark.VersionError
	if !errors.As(err, &other) {
		return ""
	}
	return other.Version
}

// MembershipChange is a request to change the list in a node's mark.
type MembershipChange struct {
	Print, List string
	Done        string // a list that is not to be replaced any more
	From        string // the only one that is; empty: any
	Before      string // the list before, if a majority of it was notified, or empty
}

// SetMembership returns the mark after the request.
func SetMembership(m nodemark.Mark, r MembershipChange, now int64) nodemark.Mark {
	if m.Print == r.Done || r.From != "" && r.From != m.Print {
		return m
	}
	switch {
	case r.Before == "" && m.Print != r.Print:
		m.Before, m.ReplacedAt = nodemark.Unknown, 0
	case r.Before != "" && r.Before != m.Before:
		m.Before, m.ReplacedAt = r.Before, now
	}
	m.Print, m.List = r.Print, r.List
	return m
}
