package leasehold

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/store"
)

// terms are what a goroutine wants of a lock. Goroutines with equal terms can share a
// place in the store's queue, and a lease one after the other.
type terms struct {
	name, purpose string
	life          leasefsm.Config
	require       store.Class
	barge         bool
	unrenewed     bool // so the description of the holder says
	claim
	own uint64 // numbers the queues of one goroutine each; 0: shared by all with these terms
}

// termsOf returns what r wants of its lock, or an error if r is invalid or its store never
// gives that. It sends nothing.
func (c *core) termsOf(r *recipe) (terms, error) {
	if err := store.CheckName(r.name); err != nil {
		return terms{}, err
	}
	life, err := r.o.life()
	if err != nil {
		return terms{}, err
	}
	caps := c.store.Caps()
	if err := caps.CheckTTL(life.TTL); err != nil {
		return terms{}, err
	}
	if r.o.Require > caps.Class {
		return terms{}, fmt.Errorf("%w: lock %q requires %v, and this store (%s, nodes: %d) gives %v at most", ErrUnsupported, r.name, r.o.Require, caps.Engine, caps.Nodes, caps.Class)
	}
	want, err := r.take.check(r.name, r.o.Weight, caps)
	if err != nil {
		return terms{}, err
	}
	return terms{name: r.name, purpose: r.o.Purpose, life: life, require: r.o.Require, barge: r.o.Barge, unrenewed: r.unrenewed || life.Renew == 0, claim: want}, nil
}
