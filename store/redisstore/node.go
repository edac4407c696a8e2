package redisstore

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/retain"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// node is one Redis server with one connection to it. At most one goroutine at a time
// writes the enqueued calls, and one reads the answers. Nothing else talks to the server,
// so calls reach it in the order in which they were enqueued.
type node struct {
	s     *Store
	index int
	addr  config.Address
	log   *slog.Logger

	mu          sync.Mutex
	waiting     queue[call]
	wire        *wire           // nil: not connected
	down        *driver.Refusal // why the node must not be used before retryAt; nil: it can be used
	retryAt     time.Time
	dialing     bool
	reached     bool // there was a connection at some time
	retiring    bool // a member that is closed when it has answered; nobody flushes it
	closed      bool
	server      membership.Identity // the server that answers
	quarantined quarantineCount     // the node's quarantine
	granted     grant               // the last grant from the node
	// fingerprint is the fingerprint of the membership in the node's mark, empty if it is not
	// known; before is that of the membership which that one replaced. omitted is set if
	// it is not ours: the node may have been down while it was replaced.
	fingerprint, before string
	omitted             bool
	// unmarked is why the user cannot update the mark, which a user that only looks at
	// locks need not do.
	unmarked *driver.Refusal
	lookAt   time.Time // when the mark is checked again
	// foreign is why the node may keep no lock; see checkMembership.
	foreign *driver.Refusal
	// unflushed is set if Flush has something to send; see router.
	unflushed atomic.Bool
	// retained holds the releases that the node has yet to receive, and resend sends
	// them; see retained.go.
	retained retain.List[leaseID, driver.Question]
	retains  atomic.Int64 // number of entries in retained
	resend   *time.Timer

	clock  clockReading
	review review

	noPush   bool   // the server refused a subscription at some time
	failures int    // to connect, in a row
	sending  bool   // a goroutine is sending
	missed   bool   // another goroutine had something to send meanwhile
	out      []byte // buffer of the goroutine that is sending

	ready   chan struct{}   // there may be something to send
	settled bell            // rings while the node retires, when a call is answered
	ctx     context.Context // ends when the store is closed
	cancel  context.CancelFunc
	all     sync.WaitGroup // goroutines of the node
}

// call is one command for one node and the receiver of its answer. The receiver is a
// vote, or a poll that wants the whole reply.
type call struct {
	command *script.Command
	timeout time.Duration
	to      driver.Receiver
	tag     int
	leases  int             // number of leases, for a command with several answers
	next    driver.Receiver // receives the answer to the second question; see driver.Question
	look    poll
	sent    time.Time
	steps   int  // if more than 1: how many calls, from this one on, were sent as one list of steps
	again   bool // sent as text, since the server did not know the script or refused a list
	trail   *trail
	// owed is set for a retained release.
	owed *owed
}

const (
	// maxLine bounds the calls enqueued for one node. A node with a full queue counts as
	// unreachable.
	maxLine = 16384
	// maxFlight bounds the commands that are sent and not answered. Calls beyond it stay
	// unsent, and an unsent call has certainly not been executed.
	maxFlight = 1024
	// From this many calls in flight on, for one node or for all of several, senders
	// first let others enqueue their calls. The numbers were measured with 1 to 256
	// goroutines. One server keeps up with several small writes; with five servers each
	// write counts.
	crowdOne, crowdMany = 16, 8
	// maxWrite is the approximate size of one write.
	maxWrite = 256 << 10
	// maxIdle is how long a connection may be unused before it is tested: a server or a
	// firewall may have dropped it meanwhile.
	maxIdle = time.Second
)

func newNode(index int, a config.Address, s *Store) *node {
	n := &node{s: s, index: index, addr: a, log: s.o.Logger.With("node", a.Host), ready: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.retained.Most = maxRetained
	n.resend = time.AfterFunc(time.Hour, n.resendDue)
	n.resend.Stop()
	n.all.Go(n.send)
	s.topology.start(n)
	return n
}

// Addr implements driver.Node.
func (n *node) Addr() string { return n.s.topology.name(n) }

// Put implements driver.Node.
func (n *node) Put(c driver.Call) error {
	return n.put(call{command: c.Payload.(*script.Command), timeout: c.Timeout, to: c.To, tag: c.Tag, leases: c.Leases, next: c.Next}, c.More)
}

// put enqueues a call and never blocks. A call for a node that is down only reads the
// clock; the first one after a pause makes the node try to reconnect.
func (n *node) put(c call, more bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.refusesLocked(c.command)
	if err == nil {
		n.reopenLocked(c.command)
		n.s.inFlight.Add(1)
		n.sendingLocked(c.command)
		c.steps = 0 // it may have been redirected
		n.waiting.push(c)
	} else {
		n.unsentLocked(c, time.Now())
	}
	if (!more || n.retiring) && n.waiting.n > 0 {
		n.wake()
	}
	return err
}

// Flush implements driver.Node. The goroutine that enqueues a call sends it, together
// with the calls that others have enqueued, which saves waking up another goroutine. If
// the socket's buffer is full, the node's own goroutine sends the rest.
func (n *node) Flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wire
	switch {
	case n.waiting.n == 0:
	case n.sending:
		n.missed = true
	case w == nil || !w.sendsAtOnceLocked():
		n.wake()
	default:
		n.sending = true
		n.mu.Unlock()
		out, more := w.take(n.out[:0])
		n.out = out
		more = w.offer(out) || more
		n.mu.Lock()
		if n.sending = false; more || n.missed {
			n.missed = false
			n.wake()
		}
		n.s.progress.ring()
	}
}

// refusesLocked returns why c cannot be enqueued.
func (n *node) refusesLocked(c *script.Command) error {
	switch {
	case n.closed:
		return store.ErrClosed
	case n.down != nil && time.Now().Before(n.retryAt):
		return n.down
	case n.down != nil && n.dialing && (!c.Script.Frees() || n.failures > 0):
		// Do not wait for a node that is unlikely to recover soon. If it has only just
		// failed, releases wait for it: leases may be left on it.
		return n.down
	case n.unmarked != nil && (c.Script.GrantsGuarded() || c.Script == script.Heal):
		n.stillUnmarkedLocked()
		return n.unmarked
	case n.foreign != nil && c.Script.Keeps():
		return n.foreign
	case n.waiting.n >= maxLine:
		return errLineFull
	}
	return nil
}

// wake wakes up the sending goroutine.
func (n *node) wake() {
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

// send is the sending goroutine of the node.
func (n *node) send() {
	for range n.ready {
		n.s.o.Rest(n.index) // lets other goroutines enqueue their calls first
		for n.flush() {
		}
		if n.isClosed() {
			n.fail()
			return
		}
	}
}

// flush sends some of the enqueued calls, and reports whether to continue at once.
func (n *node) flush() (more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sending { // the other sender wakes us afterwards
		n.missed = true
		return false
	}
	n.sending = true
	unproven, w := n.needsProofLocked(), n.wire
	n.mu.Unlock()
	more = n.sendAs(w, unproven)
	n.mu.Lock()
	more = more || n.missed
	n.sending, n.missed = false, false
	n.s.progress.ring()
	return more
}

// needsProofLocked reports whether a call is enqueued that should not be sent over a
// connection that may be dead.
func (n *node) needsProofLocked() bool {
	for c := range n.waiting.all {
		if !c.command.Repeats {
			return true
		}
	}
	return false
}

// sendAs sends over w. No other goroutine may be sending. If unproven is set, it first
// tests a connection that has been idle.
func (n *node) sendAs(w *wire, unproven bool) bool {
	if w == nil {
		if n.idle() {
			return false
		}
		if !n.connect() {
			n.fail()
			return false
		}
		n.failForeign()
		n.s.adoptOmitted()
		return true
	}
	if unproven && !w.proven() {
		return true // the connection is dead: see what has replaced it
	}
	if len(w.rest) > 0 {
		w.write(w.rest)
		w.rest = nil
	}
	out, more := w.take(n.out[:0])
	if n.out = out; len(out) > 0 {
		w.write(out)
		n.mu.Lock()
		w.resumeLocked()
		n.mu.Unlock()
	}
	return more
}

// fail answers the calls that are enqueued for a node that cannot be used. None of them
// was sent.
func (n *node) fail() {
	for {
		n.mu.Lock()
		c, ok := n.waiting.pop()
		r := script.Reply{Outcome: store.Unreachable, Err: store.ErrClosed}
		if !n.closed {
			r.Outcome, r.Err = n.down.Outcome, n.down.Err
		}
		if ok {
			n.unsentLocked(c, time.Now())
		}
		n.mu.Unlock()
		if !ok {
			return
		}
		n.finish(c, r)
	}
}

// nobody is a receiver that ignores the answer.
type nobody struct{}

func (nobody) Receive(int, int, driver.Reply) {}

// finish delivers a reply. Calls that result from it are enqueued before this call stops
// counting as in flight.
func (n *node) finish(c call, r script.Reply) {
	over := true
	if r.Err != nil {
		r, over = n.s.topology.redirect(n, c, r)
	}
	if over {
		n.deliver(c, r)
	}
	n.s.settled()
	n.settled.ring()
}

// deliver gives a reply to the receiver of the call.
func (n *node) deliver(c call, r script.Reply) {
	if c.command.Script.Frees() {
		n.answered(c, r)
	}
	if c.command == timeCommand {
		n.clockRead(r)
	} else if c.command == settingsCommand {
		n.settingsRead(r)
	} else if c.command == identityCommand {
		n.reviewed(r)
	} else if c.look != nil {
		r.Value = r.Value.Clone()
		c.look <- looked{n.index, r}
	} else if c.leases > 1 {
		usual, others := r.Answers(c.command.Script, c.leases)
		c.to.(driver.BatchReceiver).ReceiveBatch(n.index, c.tag, c.leases, usual, others)
	} else {
		if c.command.Script == script.Arrive && r.Outcome == store.Granted {
			n.arrived(r.Value, false) // before the next caller asks
		}
		r, next := r.Parts(c.command.Script)
		if c.next != nil {
			n.answer(c.next, int(quorum.Acquire), next.Answer(script.Acquire))
		}
		a := r.Answer(c.command.Script)
		n.remember(c.command, a)
		n.answer(c.to, c.tag, a)
	}
}

func (n *node) answer(to driver.Receiver, tag int, a driver.Reply) {
	if a.Report.Outcome == store.Quarantined {
		a.Report = n.quarantineSeen(a.Report)
	}
	to.Receive(n.index, tag, a)
}

// idle reports whether the node needs no connection.
func (n *node) idle() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.waiting.n == 0 && (n.retained.Len() == 0 || n.closed || n.down != nil && time.Now().Before(n.retryAt))
}

func (n *node) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

// close closes the node: calls that are still enqueued are answered as not sent.
func (n *node) close() {
	n.mu.Lock()
	n.closed = true
	n.resend.Stop()
	n.wake()
	n.mu.Unlock()
	n.cancel() // ends a connection attempt to a dead server
	n.mu.Lock()
	if n.wire != nil {
		n.wire.resumeLocked()
	}
	n.mu.Unlock()
	n.all.Wait()
}
