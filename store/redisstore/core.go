package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// core is what the nodes of a store have in common. It knows no node.
type core struct {
	o        config.Config
	driver   driver.Driver[*script.Command]
	servers  membership.Registry
	class    store.Class      // the strongest guarantee that the servers can give
	wall     func() time.Time // time of day
	declares bool             // it is opened to end quarantines, which then are no news
	closed   atomic.Bool
	inFlight atomic.Int64 // calls enqueued and not answered yet; see settled
	progress bell         // rings while the store closes, when it may have nothing left to wait for

	broken        audience.Audience // is notified of broken leases
	channel       string            // on which the servers push hand-offs to this store
	closing       chan struct{}     // closed by Close
	waiting       atomic.Int64      // number of waiters
	pushTestAfter time.Duration     // see pushTestAfter
	inlineFor     atomic.Int64      // nanoseconds; see conn.InlineFor

	guarded    atomic.Bool // servers that may have forgotten leases abstain; see guard
	membership membership.List
	longest    atomic.Int64  // longest quarantine that other clients ask for
	taking     atomic.Bool   // this client wants locks, and writes marks; see take
	otherUse   atomic.Bool   // a server belongs to others, so waiting does not help
	mayJoin    atomic.Bool   // servers that belong to nobody may become ours; see joining.go
	ttl        atomic.Int64  // the longest TTL; see longestTTL
	mostTTL    time.Duration // the longest TTL that is accepted
	raised     atomic.Int64  // the longest TTL that quarantines are to allow for, if it is more than MaxTTL
	allowed    atomic.Int64  // the longest that they do allow for, if it is more than MaxTTL
	raising    sync.Mutex    // see raise
	user       string        // describes this process to operators
}

// enqueueLocked enqueues a call that the client makes by itself. It is called with the
// peer's mutex held.
func (s *core) enqueueLocked(p *conn.Peer[call], c call) {
	s.inFlight.Add(1)
	p.Waiting.Push(c)
	p.Wake()
}

// settled counts calls as answered, or as never to be sent.
func (s *core) settled(calls int) {
	s.inFlight.Add(-int64(calls))
	s.progress.ring()
}

// nodeTimeout is how long to wait for a node's answer to a request of that TTL.
func (s *core) nodeTimeout(ttl time.Duration) time.Duration {
	return s.o.TimeoutFor(ttl, len(s.driver.Nodes))
}

// quarantine is how long a server that may have forgotten leases grants nothing: as long
// as the leases of any client may last, as far as servers know about them.
func (s *core) quarantine() time.Duration {
	return max(s.o.Quarantine(), config.QuarantineFor(time.Duration(s.raised.Load())), time.Duration(s.longest.Load()))
}

// usable refuses requests whose context has ended, or that come after Close.
func (s *core) usable(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}
