package node

import (
	"fmt"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/audience"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Shared is what the nodes of a store have in common. It knows no node.
type Shared struct {
	Config   config.Config
	Size     int                        // number of independent servers; 0 in a cluster, whose members come and go
	KeyOf    func(string) (string, int) // finds the key of a lock and its slot; nil if there are no slots, and so marks
	Topology Topology
	Others   Others
	Driver   driver.Driver[*script.Command]
	servers  membership.Registry
	Class    store.Class      // the strongest guarantee that the servers can give
	Wall     func() time.Time // time of day
	Declares bool             // it is opened to end quarantines, which then are no news
	Closed   atomic.Bool
	InFlight atomic.Int64 // calls enqueued and not answered yet; see Settled
	Progress Bell         // rings while the store closes, when it may have nothing left to wait for

	Broken        audience.Audience // is notified of broken leases
	Channel       string            // on which the servers push hand-offs to this store
	Closing       chan struct{}     // closed by Close
	Waiting       atomic.Int64      // number of waiters
	PushTestAfter time.Duration     // see pushTestAfter
	InlineFor     atomic.Int64      // nanoseconds; see conn.InlineFor

	Guarded    atomic.Bool // servers that may have forgotten leases abstain; see Guard
	Membership membership.List
	Longest    atomic.Int64 // longest quarantine that other clients ask for
	Taking     atomic.Bool  // this client wants locks, and writes marks; see fleet.Take
	OtherUse   atomic.Bool  // a server belongs to others, so waiting does not help
	MayJoin    atomic.Bool  // servers that belong to nobody may become ours; see package fleet
	ttl        atomic.Int64 // the longest TTL; see LongestTTL
	Raised     atomic.Int64 // the longest TTL that quarantines are to allow for, if it is more than MaxTTL
	user       string       // describes this process to operators
}

// Init makes s ready for nodes, which also need the Topology, the Others and the Channel.
func (s *Shared) Init(o config.Config) {
	s.Config, s.Wall, s.user, s.Closing, s.PushTestAfter = o, o.Wall(), userOf(o.Clock), make(chan struct{}), pushTestAfter
	s.InlineFor.Store(int64(conn.InlineFor))
	s.Driver = driver.Driver[*script.Command]{Encode: s.Encode, Barge: o.Barge, NodeTimeout: s.NodeTimeout, Clock: o.Clock, Wall: s.Wall, Jitter: o.Jitter(), Logger: o.Logger, Closing: s.Closing}
}

// enqueueLocked enqueues a call that the client makes by itself. It is called with the
// peer's mutex held.
func (s *Shared) enqueueLocked(p *conn.Peer[Call], c Call) {
	s.InFlight.Add(1)
	p.Waiting.Push(c)
	p.Wake()
}

// askLocked enqueues what the client asks for itself. take gets the reply, unless it is nil.
func (s *Shared) askLocked(p *conn.Peer[Call], c *script.Command, take func(script.Reply)) {
	s.enqueueLocked(p, Call{Command: c, Timeout: s.Config.ConnectTimeout, To: Nobody{}, take: take})
}

// Settled counts calls as answered, or as never to be sent.
func (s *Shared) Settled(calls int) {
	s.InFlight.Add(-int64(calls))
	s.Progress.Ring()
}

// NodeTimeout is how long to wait for a node's answer to a request of that TTL.
func (s *Shared) NodeTimeout(ttl time.Duration) time.Duration {
	return s.Config.TimeoutFor(ttl, len(s.Driver.Nodes))
}

// Quarantine is how long a server that may have forgotten leases grants nothing: as long
// as the leases of any client may last, as far as servers know about them.
func (s *Shared) Quarantine() time.Duration {
	return max(s.Config.Quarantine(), config.QuarantineFor(time.Duration(s.Raised.Load())), time.Duration(s.Longest.Load()))
}

// Encoder returns the encoder of the store's questions.
func (s *Shared) Encoder() script.Encoder {
	e := script.Encoder{GuardsAll: s.Size > 1, Several: s.Size > 1, Fingerprint: s.Membership.Fingerprint, Channel: s.Channel, Wall: s.Wall}
	e.KeyOf = s.KeyOf
	e.GuardsNone = e.KeyOf != nil
	return e
}

// Encode implements Encode of driver.Driver.
func (s *Shared) Encode(q driver.Question, old *script.Command) *script.Command {
	e := s.Encoder()
	return e.Encode(q, old)
}

// Bundle implements EncodeRenewals of driver.Driver.
func (s *Shared) Bundle(leases []store.Lease, old *script.Command) (c *script.Command, n int) {
	e := s.Encoder()
	return e.Bundle(leases, old)
}

// InspectCommand returns the command that inspects a lock.
func (s *Shared) InspectCommand(name string) *script.Command {
	e := s.Encoder()
	return e.Inspect(name, s.Guarded.Load())
}

// LongestTTL is the longest TTL that this client has asked for, or may ask for.
func (s *Shared) LongestTTL() time.Duration { return time.Duration(s.ttl.Load()) }

// LongestLease is how long a lease of any client may last from now on, as far as this one knows. It
// leaves room for what is added to it.
func (s *Shared) LongestLease() time.Duration {
	return min(max(s.Quarantine(), s.LongestTTL()), math.MaxInt64/4)
}

// NoteTTL remembers the longest TTL that was asked for.
func (s *Shared) NoteTTL(ttl time.Duration) {
	for {
		old := s.ttl.Load()
		if int64(ttl) <= old || s.ttl.CompareAndSwap(old, int64(ttl)) {
			return
		}
	}
}

// userOf describes this process to operators.
func userOf(c clock.Clock) string {
	if _, ok := c.(clock.Simulated); ok {
		return "a simulated client"
	}
	host, _ := os.Hostname() // empty where unknown
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// Bell wakes up one goroutine that waits for something to change. While nobody waits,
// ringing costs one load.
type Bell struct {
	awaited atomic.Bool
	rung    chan struct{}
}

// Await returns a channel that has a value if the bell has rung since the last value was
// taken. It is called once.
func (b *Bell) Await() <-chan struct{} {
	b.rung = make(chan struct{}, 1)
	b.awaited.Store(true)
	return b.rung
}

// Ring never blocks.
func (b *Bell) Ring() {
	if !b.awaited.Load() {
		return
	}
	select {
	case b.rung <- struct{}{}:
	default:
	}
}
