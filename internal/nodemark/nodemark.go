// Package nodemark is the text of the mark that clients leave on a node. The mark
// says whether the node may grant locks, which list of nodes it belongs to and
// which run of the server that was said of. The scripts of store/redisstore read and
// write the same text; see store/redisstore/scripts/mark.lua.
package nodemark

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is the version of the mark that this code reads and writes. A client
// refuses a node whose mark has another one.
const Version = 2

// Unknown stands for a word that is not known.
const Unknown = "-"

// Declared is the Why of a mark by which an operator declared the node empty.
const Declared = "declared"

// A Mark is what the clients of a node know about it. All instants are in
// microseconds, by the wall clock of the node or, in the fields that begin with
// Client, by that of the client that wrote the mark.
type Mark struct {
	// Open says that the node may grant locks. A node that is not open is in
	// quarantine until both Opens and ClientOpens have passed, when the next client
	// that arrives opens it. They are kept afterwards; zero: there was no quarantine.
	Open               bool
	Opens, ClientOpens int64
	// Why the last quarantine began: one word.
	Why string
	// Longest is the longest quarantine that any client asked for, in microseconds.
	Longest int64
	// Lengthened says that a client whose clock is behind has lengthened the
	// quarantine, which happens only once.
	Lengthened bool

	// Print is the fingerprint of the list of nodes that the node is one of, and List
	// that list.
	Print, List string
	// Before is the fingerprint of the list that this one replaced or is replacing,
	// and Told when the last nodes of a majority of it were told; zero: they were not.
	Before string
	Told   int64

	// Run is the server's run ID and Replication its replication ID.
	Run, Replication string
	// Durable and ClientDurable say since when all clients that wrote leases saw the
	// server append every write to a file before it answered; zero: they did not.
	Durable, ClientDurable int64
}

// New returns the mark of a node that nothing is known of.
func New() Mark {
	return Mark{Why: Unknown, Print: Unknown, List: Unknown, Before: Unknown, Run: Unknown, Replication: Unknown}
}

// VersionError says that a mark has a version that this code does not know.
type VersionError struct{ Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("its mark has version %q, and this client knows version %d only: end all clients of other versions, and then run leasehold bootstrap", e.Version, Version)
}

// String returns the text of the mark.
func (m Mark) String() string {
	state, lengthened := "shut", "0"
	if m.Open {
		state = "open"
	}
	if m.Lengthened {
		lengthened = "1"
	}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return strings.Join([]string{
		strconv.Itoa(Version), state, m.Print, m.Run, m.Replication,
		number(m.Opens), number(m.ClientOpens), m.Why, number(m.Longest), number(m.Durable), number(m.ClientDurable),
		lengthened, m.Before, number(m.Told), m.List,
	}, " ")
}

// words is how many words the text of a mark has.
const words = 15

// Parse reads the text of a mark. The error is a *VersionError.
func Parse(text string) (Mark, error) {
	w := strings.Split(text, " ")
	if w[0] != strconv.Itoa(Version) {
		return Mark{}, &VersionError{versionOf(w[0])}
	}
	broken := &VersionError{w[0] + "?"}
	if len(w) != words || w[1] != "open" && w[1] != "shut" {
		return Mark{}, broken
	}
	m := Mark{
		Open: w[1] == "open", Print: w[2], Run: w[3], Replication: w[4], Why: w[7],
		Lengthened: w[11] == "1", Before: w[12], List: w[14],
	}
	for i, to := range map[int]*int64{5: &m.Opens, 6: &m.ClientOpens, 8: &m.Longest, 9: &m.Durable, 10: &m.ClientDurable, 13: &m.Told} {
		n, err := strconv.ParseUint(w[i], 10, 53)
		if err != nil {
			return Mark{}, broken
		}
		*to = int64(n)
	}
	return m, nil
}

// versionOf returns the version that the first word of a mark stands for. Version 1
// had none, and began with the instant at which the node opens.
func versionOf(first string) string {
	if len(first) == 16 && strings.Trim(first, "0123456789") == "" {
		return "1"
	}
	return first[:min(len(first), 20)]
}
