package sim

import "github.com/leasehold-dev/leasehold/store"

// kind is the kind of the lock.
func (c *claim) kind() store.Kind { return c.k.w.script.kind(c.lock) }

// shares says whether it shares its token with others: that of a reader.
func (c *claim) shares() bool {
	return store.Lease{Kind: c.kind(), Weight: c.weight}.SharesToken()
}

// slot is what its token is compared within.
func (c *claim) slot() int {
	if c.kind().Shared {
		return 0
	}
	return c.lease.Slot()
}

// excludes says whether two leases of a lock cannot be valid at once, whatever others are.
func (c *claim) excludes(o *claim) bool {
	return c.kind().Shared && !(c.shares() && o.shares()) || !c.kind().Shared && c.slot() == o.slot()
}
