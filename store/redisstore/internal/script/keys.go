package script

import (
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// ChannelBegin is the prefix of all channels that this package uses.
const ChannelBegin = "leasehold:to:"

// BreakChannel is the channel on which the owners of broken leases are published, for all
// holders.
const BreakChannel = ChannelBegin + "broken"

// A server that restarts without its data, is emptied, or is replaced by one without all
// of the data would grant locks that are held. So it grants nothing until every lease
// that it may have forgotten has ended. This is Redlock's "delayed restart", enforced by
// the clients.
//
// The mark is a key on the server. It says whether the server may grant, and which run of
// the server that is about; see internal/nodemark. The scripts that grant check the mark
// in the same step, without another round trip, and compare the run with the one that the
// client connected to. A server that was emptied has no mark, and a server with another
// server's data has the other server's mark. A restart breaks every connection, so each new connection
// begins with a check that the mark is about this run; see arrive.lua.
//
// A quarantine ends when the wall clocks of the server and of the client that ends it
// have both passed the end in the mark. A client that stays connected also counts for
// itself, by a monotonic clock.
const MarkKey = nodemark.Key

// AloneKey is on a server while clients use it alone: who they are, for twice as long as their
// leases may last. Such a server becomes no server of a larger membership. The scripts name it
// themselves, since a user may lack the permission for it.
const AloneKey = "leasehold:alone"

// Keys of lock L. The lock itself is at its own name, where every other client that uses
// SET NX PX looks for it. All other keys are at {L}:..., in the same slot.
const (
	KeyBegin        = "{"
	CounterEnd      = "}:token"
	TombstoneMiddle = "}:gone:"
	// The queue of waiters, the places in it, and a summary of both. The scripts build
	// these names themselves. The names are part of the wire format and must not change.
	QueueEnd    = "}:line"
	WaitsEnd    = "}:waits"
	PlaceMiddle = "}:place:"
	// What a lock that several can hold has beside its own key; see readRecord.lua.
	HeldEnd  = "}:held"
	EndsEnd  = "}:ends"
	RanksEnd = "}:ranks"
	// WholeEnd is the end of a key that is never written. While a slot is being moved, a member
	// of a cluster runs no command that names several keys if it lacks one of them. So a step
	// that uses more keys than it names also names this one, and is refused as a whole then:
	// otherwise it would meet a queue without places, or a lock without its queue, and stop
	// halfway. A step that names a tombstone needs no such key, since there is hardly ever one. In
	// a cluster the key costs 0.1 us for each release.
	WholeEnd = "}:whole"
)

func AppendCounterKey(b []byte, name string) []byte {
	return resp.AppendWord(b, KeyBegin, name, CounterEnd)
}

func appendWholeKey(b []byte, name string) []byte {
	return resp.AppendWord(b, KeyBegin, name, WholeEnd)
}

func appendTombstoneKey(b []byte, r store.Lease) []byte {
	if r.Attempt == "" {
		return resp.AppendWord(b, KeyBegin, r.Name, TombstoneMiddle, r.Owner)
	}
	return resp.AppendWord(b, KeyBegin, r.Name, TombstoneMiddle, r.Owner, " ", r.Attempt)
}

// GlobEscape escapes text in a pattern of SCAN or of an ACL rule.
var GlobEscape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
