// Package nodemark encodes and decodes the mark that clients write on a node. The mark says
// whether the node may grant locks, which membership it belongs to, and which run of the
// server that is about. The scripts of store/redisstore read and
// write the same text; see store/redisstore/internal/script/lua/readMark.lua.
package nodemark

import (
	"fmt"
	"strconv"
	"strings"
)

// Key is the key at which a node has its mark.
const Key = "leasehold:node"

// Version is the version of marks that this package reads and writes. A client refuses a
// node whose mark has another version.
const Version = 1

// Unknown stands for a value that is not known.
const Unknown = "-"

// Declared is the Why of a mark with which an operator has declared the node empty.
const Declared = "declared"

// Mark is the shared knowledge of a node's clients about it. All times are in microseconds,
// by the wall clock of the node or, in fields that begin with Client, by that of the
// client that wrote the mark.
type Mark struct {
	// Open is set if the node may grant locks. Otherwise it is in quarantine until Opens
	// and ClientOpens have both passed and the next client connects, which sets Open.
	// Both times are kept afterwards; zero means that there was no quarantine. If Why is
	// Declared, Opens is when the operator declared it; zero if that is not known.
	Open               bool
	Opens, ClientOpens int64
	// Why is the reason for the last quarantine, as one word.
	Why string
	// Longest is the longest quarantine that any client asked for, in microseconds.
	Longest int64
	// Lengthened is set if a client whose clock is behind has lengthened the quarantine,
	// which happens only once.
	Lengthened bool

	// Print is the fingerprint of the membership that the node belongs to, and List that
	// membership.
	Print, List string
	// Before is the fingerprint of the membership that this one replaced or is replacing.
	// ReplacedAt is when a majority of that one had been updated; zero if it has not.
	Before     string
	ReplacedAt int64

	// Run is the server's run ID and Replication its replication ID. Origin identifies the
	// mark: the first run, cut short, of those since which the node has forgotten nothing.
	Run, Replication, Origin string
	// Durable and ClientDurable are since when every client that wrote leases has seen
	// that the server appends each write to a file before answering; zero if not all did.
	Durable, ClientDurable int64
}

// New returns the mark of a node about which nothing is known.
func New() Mark {
	return Mark{Why: Unknown, Print: Unknown, List: Unknown, Before: Unknown, Run: Unknown, Replication: Unknown, Origin: Unknown}
}

// Trusted returns the mark of a node that is declared to have lost nothing as long as
// this run of its server goes on. It is durable if a client finds that the server is. The
// argument now is the server's clock, in microseconds.
func Trusted(run string, now int64) Mark {
	m := New()
	m.Open, m.Why, m.Run, m.Opens, m.Origin = true, Declared, run, now, OriginOf(run)
	m.Durable, m.ClientDurable = 1, 1
	return m
}

// OriginOf returns the Origin of a mark that is written first in that run of the server.
func OriginOf(run string) string {
	if run == "" {
		return Unknown
	}
	return run[:min(len(run), 12)]
}

// VersionError reports a mark whose version this package does not support.
type VersionError struct{ Version string }

func (e *VersionError) Error() string {
	return fmt.Sprintf("its mark has version %q, and this client supports version %d only: stop all clients of other versions, then run leasehold bootstrap or call redisadmin.Bootstrap", e.Version, Version)
}

// String returns the text of the mark. A node that is not Open is called shut there.
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
		lengthened, m.Before, number(m.ReplacedAt), m.Origin, m.List,
	}, " ")
}

// words is the number of words in the text of a mark.
const words = 16

// Parse parses the text of a mark. Its error is always a *VersionError.
func Parse(text string) (Mark, error) {
	w := strings.Split(text, " ")
	if w[0] != strconv.Itoa(Version) {
		return Mark{}, &VersionError{w[0][:min(len(w[0]), 20)]}
	}
	broken := &VersionError{w[0] + "?"}
	if len(w) != words || w[1] != "open" && w[1] != "shut" {
		return Mark{}, broken
	}
	m := Mark{
		Open: w[1] == "open", Print: w[2], Run: w[3], Replication: w[4], Why: w[7],
		Lengthened: w[11] == "1", Before: w[12], Origin: w[14], List: w[15],
	}
	for i, to := range map[int]*int64{5: &m.Opens, 6: &m.ClientOpens, 8: &m.Longest, 9: &m.Durable, 10: &m.ClientDurable, 13: &m.ReplacedAt} {
		n, err := strconv.ParseUint(w[i], 10, 53)
		if err != nil {
			return Mark{}, broken
		}
		*to = int64(n)
	}
	return m, nil
}
