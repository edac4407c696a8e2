package driver

import (
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// departures remembers the owners that left a queue most recently. A node may hand the
// lock to one of them all the same, because the release of its place was lost or a request
// for the place arrived late. Nobody would use that grant, so it is released at once. The
// grant of a lease that is held is kept: its last nodes may hand it over late. Owners that
// are not remembered are left alone.
type departures struct {
	byOwner map[string]*departure
	ring    [mostDepartures]string // the owners, oldest at next
	next    int                    // index of the oldest
	some    atomic.Bool            // byOwner is not empty
}

type departure struct {
	r    store.Lease
	held bool // the owner was granted the lock and has not released it
	// The last token of its grant, if it was granted the lock. Nodes that are not needed
	// may grant it later.
	token uint64
	// The nodes that have not answered the release of the lease. A push of one of them is
	// older than its answer, so the release, which leaves nothing to the owner, comes after
	// the grant.
	releasing quorum.Set
	late      quorum.Set // those of them that have pushed a grant meanwhile
}

const mostDepartures = 1024

// add remembers that the owner of r has left the queue.
func (d *departures) add(r store.Lease, held bool, token uint64) {
	if d.byOwner == nil {
		d.byOwner = map[string]*departure{}
		d.some.Store(true)
	}
	if d.byOwner[r.Owner] == nil {
		delete(d.byOwner, d.ring[d.next])
		d.ring[d.next] = r.Owner
		d.next = (d.next + 1) % mostDepartures
	}
	d.byOwner[r.Owner] = &departure{r: r, held: held, token: token}
}
