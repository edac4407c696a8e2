package redisstore

import (
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// encoder returns the encoder of the store's questions.
func (s *Store) encoder() script.Encoder {
	e := script.Encoder{GuardsAll: len(s.nodes) > 1, Fingerprint: s.membership.Fingerprint, Channel: s.channel, Wall: s.wall}
	e.KeyOf = s.topology.keys()
	e.GuardsNone = e.KeyOf != nil
	return e
}

// encode implements Encode of driver.Driver.
func (s *Store) encode(q driver.Question, old any) any {
	c, _ := old.(*script.Command)
	e := s.encoder()
	return e.Encode(q, c)
}

// bundle implements EncodeRenewals of driver.Driver.
func (s *Store) bundle(leases []store.Lease, old any) (payload any, n int) {
	c, _ := old.(*script.Command)
	e := s.encoder()
	return e.Bundle(leases, c)
}

// inspectCommand returns the command that inspects a lock.
func inspectCommand(s *Store, name string) *script.Command {
	e := s.encoder()
	return e.Inspect(name, s.guarded.Load())
}
