package leasehold_test

import (
	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store/memory"
	"github.com/leasehold-dev/leasehold/store/redis"
)

// A clock can be written, for the client and for stores, with public names only.
type ownClock struct{}

func (ownClock) Now() leasehold.Instant { return 1 }

var (
	_ = leasehold.Options{Clock: ownClock{}}
	_ = memory.Options{Clock: ownClock{}}
	_ = redis.Options{Clock: ownClock{}}
)
