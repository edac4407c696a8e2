package script

import (
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Leases that are renewed together share one command: much of the cost of a renewal is
// the command and its answer, on both sides.

const (
	// MaxBundle bounds the leases in one command, which blocks the server for some
	// microseconds per lease.
	MaxBundle = 64
	// maxBundleBytes is the approximate limit on the size of such a command.
	maxBundleBytes = 32 << 10
)

// Bundle encodes the renewal of as many leases as one command can be about, and returns
// their number. It reuses the memory of c, if it is given.
func (e *Encoder) Bundle(leases []store.Lease, c *Command) (_ *Command, n int) {
	if c == nil {
		c = new(Command)
	}
	first, bytes := &leases[0], 0
	mutex := first.Kind.IsMutex()
	for n < min(len(leases), MaxBundle) {
		r := &leases[n]
		bytes += 2*len(r.Name) + len(r.Owner) + len(r.Meta)
		if n > 0 && (bytes > maxBundleBytes || !mutex && !e.together(*r, *first) || mutex != r.Kind.IsMutex() || r.TTL != first.TTL || e.guards(*r) != e.guards(*first)) {
			break
		}
		n++
	}
	if mutex {
		e.Extend(c, leases[:n])
		return c, n
	}
	c.Question = driver.Question{Op: quorum.Extend, Lease: *first}
	e.renewHolds(c, leases[:n])
	return c, n
}

// together reports whether two leases of a lock that several can hold can be renewed in one step,
// if they have the same TTL and requirement.
func (e *Encoder) together(r, other store.Lease) bool {
	return r.Name == other.Name && r.Kind == other.Kind && max(r.Weight, 1) == max(other.Weight, 1)
}

// Extend makes c renew leases. All of them have the TTL of the first one, and the same
// requirement.
func (e *Encoder) Extend(c *Command, leases []store.Lease) {
	script, guarded := Extend, e.guards(leases[0])
	if guarded {
		script = ExtendGuarded
	}
	b := c.beginMany(script, len(leases)-1)
	for i := range leases {
		b = resp.AppendWord(b, leases[i].Name)
	}
	for i := range leases {
		b = AppendCounterKey(b, leases[i].Name)
	}
	b = e.appendMark(c, b, guarded)
	for i := range leases {
		b = appendValue(b, leases[i])
	}
	b = resp.AppendMillis(b, leases[0].TTL)
	if c.gateAt = len(b); guarded {
		b = resp.AppendWord(b, e.Fingerprint)
	}
	c.Bytes = b
}

// Answers reads the reply to one command about n leases.
func (r Reply) Answers(s *Script, n int) (usual driver.Reply, others []driver.Exception) {
	said := r.Value.List
	if r.Outcome != store.Granted || len(said) == 0 || said[0].Kind != '*' {
		usual = r.Answer(s)
		// If the server refused the command as a whole, single leases may still be
		// renewable: perhaps the user lacks permission for one name only.
		usual.RetrySingly = r.Outcome != store.Granted && r.At != 0
		return usual, nil
	}
	part := func(v resp.Value) driver.Reply {
		p := ReplyTo(v)
		p.At = r.At
		return p.Answer(s)
	}
	others = make([]driver.Exception, 0, len(said)/2)
	next := int64(1) // Lua counts from 1
	for said := said[1:]; len(said) > 0; said = said[2:] {
		at := said[0]
		if len(said) == 1 || at.Kind != ':' || at.Num < next || at.Num > int64(n) {
			a := driver.Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(r.Value)}, At: r.At}
			return a, nil
		}
		others = append(others, driver.Exception{Lease: int(at.Num - 1), Reply: part(said[1])})
		next = at.Num + 1
	}
	return part(said[0]), others
}
