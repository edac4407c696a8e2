package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// keepsHours returns nil if the store can keep a lease for ttl, which is hours, that nobody renews
// and that any server of the store can end. Otherwise the error says why not.
func keepsHours(c store.Caps, ttl time.Duration) error {
	if strings.HasPrefix(c.Engine, "redis") {
		return fmt.Errorf("%w: the store (%s) does not suit leases of %v: a Redis server that lost its last writes either forgets the lease, or grants nothing at all for as long as the longest lease can last; serve a folder, a database or etcd", store.ErrUnsupported, c.Engine, ttl)
	}
	return c.CheckTTL(ttl)
}
