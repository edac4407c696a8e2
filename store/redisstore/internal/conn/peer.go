package conn

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

// Peer is one server with one connection to it, which is made when it is needed. At most
// one goroutine at a time writes the enqueued calls, and one reads the answers. Nothing
// else uses the connection, so calls reach the server in the order in which they were
// enqueued. Call Init before anything else.
type Peer[C any] struct {
	// Mu guards the fields of the Peer and of its Pipe. An owner may guard its own fields
	// with it, too.
	Mu sync.Mutex
	// Waiting holds the calls that were not sent yet. It is guarded by Mu. AnnounceLocked or
	// Wake has to follow after a call was added.
	Waiting Queue[C]

	owner  Owner[C]
	config *config.Config

	pipe     *Pipe[C]  // nil: not connected
	down     error     // why the server must not be used before retryAt; nil: it can be used
	retryAt  time.Time // see down
	dialing  bool
	reached  bool  // there was a connection at some time
	retiring bool  // the Peer is closed when all is answered; nobody flushes it
	closed   error // why it is closed; nil: it is not
	failures int   // to connect, in a row
	sender   sender[C]

	ctx    context.Context // ends when the Peer is closed
	cancel context.CancelFunc
	all    sync.WaitGroup // goroutines of the Peer
}

const (
	// maxWaiting bounds the calls that were not sent yet. A server with a full queue
	// counts as unreachable.
	maxWaiting = 16384
	// maxFlight bounds the calls that are sent and not answered. Calls beyond it stay
	// unsent, and an unsent call has certainly not been executed.
	maxFlight = 1024
	// maxWrite is the approximate size of one write.
	maxWrite = 256 << 10
	// maxIdle is how long a connection may be unused before it is tested: a server or a
	// firewall may have dropped it meanwhile.
	maxIdle = time.Second
)

// ErrLate answers calls that were not sent in time.
var ErrLate = errors.New("it answers more slowly than it is asked: the request was not sent in time")

// errFull refuses calls beyond maxWaiting.
var errFull = errors.New("too many requests wait for it")

// Init makes p ready for connections. Nothing is sent before Start.
func (p *Peer[C]) Init(owner Owner[C], c *config.Config) {
	p.owner, p.config = owner, c
	p.sender.p, p.sender.ready = p, make(chan struct{}, 1)
	p.ctx, p.cancel = context.WithCancel(context.Background())
}

// Start starts to send.
func (p *Peer[C]) Start() { p.Go(p.sender.run) }

// Go runs f in a goroutine that Close waits for. It must end with Context.
func (p *Peer[C]) Go(f func()) { p.all.Go(f) }

// Context ends when p is closed.
func (p *Peer[C]) Context() context.Context { return p.ctx }

// Pipe returns the connection; nil if there is none.
func (p *Peer[C]) Pipe() *Pipe[C] {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return p.pipe
}

// PipeLocked is Pipe with Mu held.
func (p *Peer[C]) PipeLocked() *Pipe[C] { return p.pipe }

// DownLocked returns when the Peer will try a server again that cannot be used, and why it
// cannot, which is what Owner.DownLocked has returned. The error is nil if it can be used,
// or was not tried yet.
func (p *Peer[C]) DownLocked() (retry time.Time, why error) { return p.retryAt, p.down }

// ClosedLocked reports whether p was closed.
func (p *Peer[C]) ClosedLocked() bool { return p.closed != nil }

// TriedLocked reports whether p has tried to connect.
func (p *Peer[C]) TriedLocked() bool { return p.pipe != nil || p.down != nil }

// Wake wakes up the sending goroutine. It never blocks.
func (p *Peer[C]) Wake() {
	select {
	case p.sender.ready <- struct{}{}:
	default:
	}
}

// RefusesLocked returns why a call cannot be enqueued; nil if it can. A server that is
// down costs only a reading of the clock; after a pause the next call makes p connect
// again. While that is under way, only patient calls wait for it, and only if it has just
// failed for the first time: it is unlikely to recover soon. The reason for the others may
// be out of date, which is what old says.
func (p *Peer[C]) RefusesLocked(patient bool) (old bool, why error) {
	switch {
	case p.closed != nil:
		return false, p.closed
	case p.down != nil && time.Now().Before(p.retryAt):
		return false, p.down
	case p.down != nil && p.dialing && (!patient || p.failures > 0):
		return true, p.down
	case p.FullLocked():
		return false, errFull
	}
	return false, nil
}

// FullLocked reports whether no more calls can wait.
func (p *Peer[C]) FullLocked() bool { return p.Waiting.n >= maxWaiting }

// AnnounceLocked wakes up the sending goroutine if something is enqueued, unless more is
// set: then the caller calls Flush.
func (p *Peer[C]) AnnounceLocked(more bool) {
	if (!more || p.retiring) && p.Waiting.n > 0 {
		p.Wake()
	}
}
