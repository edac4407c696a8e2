package leasehold_test

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// A clock can be written, for the client and for stores, with public names only.
type ownClock struct{}

func (ownClock) Now() leasehold.Instant { return 1 }

var (
	_ = leasehold.Options{Clock: ownClock{}}
	_ = memstore.Options{Clock: ownClock{}}
	_ = redisstore.Options{Clock: ownClock{}}
)
