package membership

import (
	"cmp"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Arrival is what a client says to a server when it connects: the script checks the mark
// and updates it; see arrive.lua.
type Arrival struct {
	List       List
	Server     Identity
	Durable    string // see identity.durable; "unasked" on an old connection
	Quarantine time.Duration
	Wall       time.Time
	// Lock and token are the latest grant that the client remembers; empty and zero if
	// there is none. A server that does not know it has lost data.
	Lock  string
	Token uint64
	// Joins says whether a server that names no membership may become one of several.
	Joins Joining
	// Origin is that of the mark which the client saw at the same address before, and Ago how long ago
	// that was. It is empty if the client saw none.
	Origin string
	Ago    time.Duration
}

// Joining says what may become of a server that names no membership, or a single server.
type Joining string

const (
	Alone   Joining = "alone" // it is all that the client has
	MayJoin Joining = "may"   // it may become one of the client's servers
	MayNot  Joining = "not"
)

// Command returns the call of the script.
func (a Arrival) Command() *script.Command {
	promoted := "0"
	if a.Server.Promoted {
		promoted = "1"
	}
	c := new(script.Command)
	b := resp.AppendWord(c.Begin(script.Arrive), script.MarkKey)
	if a.Token > 0 {
		b = script.AppendCounterKey(b, a.Lock)
	} else {
		b = resp.AppendWord(b, script.MarkKey) // in the place of a token counter
	}
	b = resp.AppendWord(resp.AppendWord(b, a.List.Fingerprint), a.List.Text)
	b = resp.AppendWord(b, cmp.Or(a.Server.RunID, nodemark.Unknown))
	b = resp.AppendWord(b, cmp.Or(a.Server.Replication, nodemark.Unknown))
	b = resp.AppendWord(b, promoted)
	b = resp.AppendNumber(b, uint64(a.Quarantine.Microseconds()))
	b = resp.AppendNumber(b, uint64(max(0, a.Wall.UnixMicro())))
	b = resp.AppendNumber(resp.AppendWord(b, a.Durable), a.Token)
	b = resp.AppendWord(resp.AppendWord(b, string(a.Joins)), cmp.Or(a.Origin, nodemark.Unknown))
	c.Bytes = resp.AppendNumber(b, uint64(max(0, a.Ago.Microseconds())))
	return c
}

// UseAloneCommand notes on a server that this client uses it alone, with leases that last for
// up to that time from now on.
func UseAloneCommand(lasts time.Duration, client string) *script.Command {
	c := new(script.Command)
	b := resp.AppendWord(c.Begin(script.UseAlone), script.MarkKey)
	c.Bytes = resp.AppendWord(resp.AppendNumber(b, uint64(lasts.Milliseconds())), client)
	return c
}

// Declared returns the mark of a server that is declared empty at now, by its own clock. If no
// locks are held there, no lease has been written yet, so the mark claims durability if the
// server is durable.
func Declared(list List, server Identity, durable bool, now time.Time) nodemark.Mark {
	m := nodemark.Trusted(server.RunID, max(0, now.UnixMicro()))
	m.Print, m.List, m.Replication = list.Fingerprint, list.Text, cmp.Or(server.Replication, nodemark.Unknown)
	m.Durable, m.ClientDurable = 0, 0
	if durable {
		m.Durable, m.ClientDurable = 1, 1
	}
	return m
}

var ErrUnidentified = script.NewUnusable("cannot tell whether the server was restarted and has forgotten leases: permit the user INFO, or set fsync=always in the URL if the server appends every write before it answers")

// SetCommand makes a node's mark name another membership; see setMembership.lua.
func SetCommand(print, text, done, from, before string) *script.Command {
	c := new(script.Command)
	b := resp.AppendWord(resp.AppendWord(c.Begin(script.SetMembership), script.MarkKey), print)
	c.Bytes = resp.AppendWord(resp.AppendWord(resp.AppendWord(resp.AppendWord(b, text), done), from), before)
	return c
}

// Channel is the channel on which changes of a server's membership are published.
// publishChange.lua contains its name, too.
const Channel = script.ChannelBegin + "all"

// TrackCommand asks the server to report writes of other clients to keys that begin like
// the mark, which are rare, and the loss of all keys.
var TrackCommand = resp.Command("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", script.MarkKey, "NOLOOP")
