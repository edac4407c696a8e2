package driver

import (
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// departed are owners that stood in line and do not wait any more, most lately those
// that left last. A node may hand the lock to one of them all the same: the release that
// gave up its place was lost, or a request for the place came late. Nobody would use that
// grant, so it is given back at once; but not the grant of a lease that is held, which
// its last nodes may hand over late. An owner that is not known is left alone.
type departed struct {
	byOwner map[string]*departure
	ring    [mostDeparted]string // their owners
	next    int                  // of which this one left first
	some    atomic.Bool          // there are some
}

type departure struct {
	r    store.Request
	held bool // it was granted the lock, and has not released it
}

const mostDeparted = 1024

// add takes in that the owner of r has left the line.
func (d *departed) add(r store.Request, held bool) {
	if d.byOwner == nil {
		d.byOwner = map[string]*departure{}
		d.some.Store(true)
	}
	if d.byOwner[r.Owner] == nil {
		delete(d.byOwner, d.ring[d.next])
		d.ring[d.next] = r.Owner
		d.next = (d.next + 1) % mostDeparted
	}
	d.byOwner[r.Owner] = &departure{r, held}
}

// depart takes in that nobody waits for an attempt any more. Its mutex is held.
func (k *Keeper) depart(a *attempt) {
	w := &k.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.byOwner, a.r.Owner)
	w.departed.add(a.r, a.core.Verdict() == quorum.Won)
}

// releases takes in that the lease of an owner, if there is one, is being released.
func (k *Keeper) releases(owner string) {
	w := &k.waiting
	if !w.departed.some.Load() {
		return // as is usual where nobody waits
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.departed.byOwner[owner]; d != nil {
		d.held = false
	}
}

// decline gives back what a node has granted to owner, or keeps free for it, if that one
// has left. The lock goes to the next in line there. Of a lease that is held it returns
// which lock that is.
func (k *Keeper) decline(node int, owner string) (held string) {
	w := &k.waiting
	w.mu.Lock()
	d := w.departed.byOwner[owner]
	unwanted := d != nil && !d.held && declineUnwanted
	var r store.Request
	if unwanted {
		r = d.r
	} else if d != nil {
		held = d.r.Name
	}
	w.mu.Unlock()
	if !unwanted {
		return held
	}
	c := Call{Payload: k.Encode(Question{Op: quorum.Release, Lease: r}, nil), Timeout: k.NodeTimeout(r.TTL), To: ignored{}}
	if err := k.Nodes[node].Put(c); err != nil {
		k.Logger.Debug("a lock that nobody wants any more could not be given back", "lock", r.Name, "node", k.Nodes[node].Addr(), "err", err)
	}
	return ""
}
