package redisstore

import (
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Leases that are renewed together share one command: much of the cost of a renewal is
// the command and its answer, on both sides.

const (
	// maxBundle bounds the leases in one command, which blocks the server for some
	// microseconds per lease.
	maxBundle = 64
	// maxBundleBytes is the approximate limit on the size of such a command.
	maxBundleBytes = 32 << 10
)

// bundle implements EncodeRenewals of driver.Driver.
func (s *Store) bundle(leases []store.Lease, old any) (payload any, n int) {
	c, _ := old.(*command)
	if c == nil {
		c = new(command)
	}
	first, bytes := &leases[0], 0
	for n < min(len(leases), maxBundle) {
		r := &leases[n]
		bytes += 2*len(r.Name) + len(r.Owner) + len(r.Meta)
		if n > 0 && (bytes > maxBundleBytes || r.TTL != first.TTL || s.guards(*r) != s.guards(*first)) {
			break
		}
		n++
	}
	s.extend(c, leases[:n])
	return c, n
}

// extend makes c renew leases. All of them have the TTL of the first one, and the same
// requirement.
func (s *Store) extend(c *command, leases []store.Lease) {
	script, guarded := extendScript, s.guards(leases[0])
	if guarded {
		script = prolongScript
	}
	b := c.beginMany(script, len(leases)-1)
	for i := range leases {
		b = resp.AppendWord(b, leases[i].Name)
	}
	for i := range leases {
		b = appendCounterKey(b, leases[i].Name)
	}
	if guarded {
		b = resp.AppendWord(b, markKey)
	}
	for i := range leases {
		b = appendValue(b, leases[i])
	}
	b = resp.AppendMillis(resp.AppendMillis(b, leases[0].TTL), counterLife)
	if guarded {
		b = resp.AppendWord(b, s.membership.fingerprint)
	}
	c.bytes = b
}

// answers reads the reply to one command about n leases.
func (r reply) answers(s *script, n int) (usual driver.Reply, others []driver.Exception) {
	said := r.value.List
	if r.outcome != store.Granted || len(said) == 0 || said[0].Kind != '*' {
		usual = r.answer(s)
		// If the server refused the command as a whole, single leases may still be
		// renewable: perhaps the user lacks permission for one name only.
		usual.RetrySingly = r.outcome != store.Granted && r.at != 0
		return usual, nil
	}
	part := func(v resp.Value) driver.Reply {
		p := replyTo(v)
		p.at = r.at
		return p.answer(s)
	}
	others = make([]driver.Exception, 0, len(said)/2)
	next := int64(1) // Lua counts from 1
	for said := said[1:]; len(said) > 0; said = said[2:] {
		at := said[0]
		if len(said) == 1 || at.Kind != ':' || at.Num < next || at.Num > int64(n) {
			a := driver.Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.Refused, Err: resp.Unexpected(r.value)}, At: r.at}
			return a, nil
		}
		others = append(others, driver.Exception{Lease: int(at.Num - 1), Reply: part(said[1])})
		next = at.Num + 1
	}
	return part(said[0]), others
}
