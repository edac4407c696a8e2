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
	why := ""
	switch {
	case strings.HasPrefix(c.Engine, "redis"):
		why = "a Redis server that lost its last writes either forgets the lease, or grants nothing at all for as long as the longest lease can last"
	case c.Engine == "etcd", c.Engine == "zookeeper":
		why = "a lease belongs to the server that acquired it, and no other one can end it after that server was restarted"
	}
	if why == "" {
		return c.CheckTTL(ttl)
	}
	return fmt.Errorf("%w: the store (%s) does not suit leases of %v: %s; serve a folder, a database or S3", store.ErrUnsupported, c.Engine, ttl, why)
}
