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
)

// node is one Redis server: one connection, to which one goroutine at a time
// writes what waits in line, and one goroutine that reads its answers. Nothing else
// talks to the server, so everything reaches it in the order it was put.
type node struct {
	s     *Store
	index int
	addr  address
	log   *slog.Logger

	mu      sync.Mutex
	waiting queue[call]
	wire    *wire           // nil: there is no connection
	down    *driver.Refusal // why it is not to be used before retryAt; nil: it is
	retryAt time.Time
	dialing bool
	reached bool // there was a connection at some time
	closed  bool
	server  identity // that answers there
	shut    count    // its quarantine
	granted grant    // the last that it gave us
	// print is the fingerprint of the list in its mark, empty if that is not known, and
	// before of the list which that one replaced; omitted: it names another list than ours,
	// and may have been left out when that was replaced.
	print, before string
	omitted       bool
	// unmarked is why the user can not see to its mark, which who only looks at
	// locks does not have to.
	unmarked *driver.Refusal
	lookAt   time.Time // when it is looked at again
	// foreign is why nothing is to be locked there: see belongs.
	foreign *driver.Refusal
	// unflushed says that Flush has something to send; see router.
	unflushed atomic.Bool
	// retained is what is still to be told here, and recall sees to it; see retained.go.
	retained retain.List[leaseID, driver.Question]
	retains  atomic.Int64 // so much
	recall   *time.Timer

	clock clockReading

	deaf     bool   // the server did not let us listen at some time
	failures int    // in a row, to connect
	sending  bool   // somebody is
	missed   bool   // meanwhile somebody else would have
	out      []byte // of whoever is sending

	ready  chan struct{}   // there may be something to send
	ctx    context.Context // ends when the store is closed for good
	cancel context.CancelFunc
	all    sync.WaitGroup // its goroutines
}

// call is one command for one node, and who wants the answer: a vote, or
// somebody who looks at the whole of it.
type call struct {
	command *command
	timeout time.Duration
	to      driver.Receiver
	tag     int
	leases  int             // that it is about, where several answers are wanted
	next    driver.Receiver // of the answer to what is asked with it, see driver.Question
	look    poll
	sent    time.Time
	again   bool // by its text, since the server did not know the script
	trail   *trail
	// Of a release that was retained: whose, and as what.
	owed *owed
}

const (
	// maxLine bounds what waits for one node; a full line counts as a node that
	// can not be reached.
	maxLine = 16384
	// maxFlight commands at most are sent and not answered. What waits longer
	// has not been sent, which is better to know than that it may have been.
	maxFlight = 1024
	// From so many calls in flight on, at the only node or at all of several, those
	// who send let others put theirs first: as measured, with 1 to 256 goroutines. One
	// server keeps up with a few small writes, of five each would be a write less.
	crowdOne, crowdMany = 16, 8
	// maxWrite is about how much is written in one go.
	maxWrite = 256 << 10
	// maxIdle is how long a connection may be unused before it is tried first: a
	// server or a firewall may have dropped it meanwhile.
	maxIdle = time.Second
)

func newNode(index int, a address, s *Store) *node {
	n := &node{s: s, index: index, addr: a, log: s.o.Logger.With("node", a.host), ready: make(chan struct{}, 1)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.retained.Most = maxRetained
	n.recall = time.AfterFunc(time.Hour, n.tellDue)
	n.recall.Stop()
	n.all.Go(n.send)
	if s.sentinels != nil {
		n.all.Go(n.follow)
	}
	return n
}

// Addr implements driver.Node.
func (n *node) Addr() string {
	if s := n.s.sentinels; s != nil {
		return s.name()
	}
	return n.addr.host
}

// Put implements driver.Node.
func (n *node) Put(c driver.Call) error {
	return n.put(call{command: c.Payload.(*command), timeout: c.Timeout, to: c.To, tag: c.Tag, leases: c.Leases, next: c.Next}, c.More)
}

// put never blocks. A node that is down costs its callers a look at the clock;
// the first one after a while has it tried again.
func (n *node) put(c call, more bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := n.refuses(c.command)
	if err == nil {
		n.reopenLocked(c.command)
		n.s.inFlight.Add(1)
		n.isTold(c.command)
		n.waiting.push(c)
	} else {
		n.unsent(c, time.Now())
	}
	if !more && n.waiting.n > 0 {
		n.wake()
	}
	return err
}

// Flush implements driver.Node. Whoever puts something sends it, and what others
// have put by then, which saves waking up another goroutine; what there is no room for
// is left to the node's own.
func (n *node) Flush() {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.wire
	switch {
	case n.waiting.n == 0:
	case n.sending:
		n.missed = true
	case w == nil || !w.sendsAtOnce():
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
	}
}

// refuses says why c can not be put in line. The mutex is held.
func (n *node) refuses(c *command) error {
	switch {
	case n.closed:
		return store.ErrClosed
	case n.down != nil && time.Now().Before(n.retryAt):
		return n.down
	case n.down != nil && n.dialing && (!c.script.frees() || n.failures > 0):
		// Nobody waits for a node of which there is little hope. Where it has
		// only just fallen silent, what may be left there is to be released.
		return n.down
	case n.unmarked != nil && (c.script == guardedScript || c.script == healScript):
		n.stillUnmarkedLocked()
		return n.unmarked
	case n.foreign != nil && c.script.keeps():
		return n.foreign
	case n.waiting.n >= maxLine:
		return errLineFull
	}
	return nil
}

// wake has the sending goroutine look.
func (n *node) wake() {
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

// send is the node's goroutine: it writes whatever is in line in one go.
func (n *node) send() {
	for range n.ready {
		n.s.o.rest(n.index) // let those who are about to put something get on board
		for n.flush() {
		}
		if n.isClosed() {
			n.fail()
			return
		}
	}
}

// flush sends some of what waits, and says whether to go on at once.
func (n *node) flush() (more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sending { // and wakes us afterwards
		n.missed = true
		return false
	}
	n.sending = true
	unproven, w := n.needsProof(), n.wire
	n.mu.Unlock()
	more = n.sendAs(w, unproven)
	n.mu.Lock()
	more = more || n.missed
	n.sending, n.missed = false, false
	return more
}

// needsProof says whether anything is in line that had better not be sent into the
// void. The mutex is held.
func (n *node) needsProof() bool {
	for c := range n.waiting.all {
		if !c.command.repeats {
			return true
		}
	}
	return false
}

// sendAs sends over w, as the only one who does. What is in line is best sent over a
// connection that is known to be there, if unproven.
func (n *node) sendAs(w *wire, unproven bool) bool {
	if w == nil {
		if n.idle() {
			return false
		}
		if !n.connect() {
			n.fail()
			return false
		}
		n.turnAway()
		n.s.adopt()
		return true
	}
	if unproven && !w.proven() {
		return true // it was not: see what there is now
	}
	if len(w.rest) > 0 {
		w.write(w.rest)
		w.rest = nil
	}
	out, more := w.take(n.out[:0])
	if n.out = out; len(out) > 0 {
		w.write(out)
		n.mu.Lock()
		w.resume()
		n.mu.Unlock()
	}
	return more
}

// fail answers what waits for a node that can not be used: nothing of it was
// sent.
func (n *node) fail() {
	for {
		n.mu.Lock()
		c, ok := n.waiting.pop()
		r := reply{outcome: store.Unreachable, err: store.ErrClosed}
		if !n.closed {
			r.outcome, r.err = n.down.Outcome, n.down.Err
		}
		if ok {
			n.unsent(c, time.Now())
		}
		n.mu.Unlock()
		if !ok {
			return
		}
		n.settle(c, r)
	}
}

// nobody wants the answer.
type nobody struct{}

func (nobody) Receive(int, int, driver.Reply) {}

// settle hands a reply out. What that leads to is put in line before the call
// counts as no longer in flight.
func (n *node) settle(c call, r reply) {
	if n.s.route != nil {
		var over bool
		if r, over = n.s.route.settled(n, c, r); !over {
			n.s.inFlight.Add(-1)
			return
		}
	}
	n.deliver(c, r)
	n.s.inFlight.Add(-1)
}

// deliver gives a reply to whoever asked.
func (n *node) deliver(c call, r reply) {
	if c.command.script.frees() {
		n.answered(c, r)
	}
	if c.command == timeCommand {
		n.clockRead(r)
	} else if c.look != nil {
		r.value = r.value.clone()
		c.look <- looked{n.index, r}
	} else if c.leases > 1 {
		usual, others := r.answers(c.command.script, c.leases)
		c.to.(driver.BatchReceiver).ReceiveBatch(n.index, c.tag, c.leases, usual, others)
	} else {
		if c.command == infoCommand && r.outcome == store.Granted {
			n.compare(r.value)
		}
		if c.command.script == arriveScript && r.outcome == store.Granted {
			n.arrived(r.value, false) // whoever asks next hears what it leads to
		}
		r, next := r.parts(c.command.script)
		if c.next != nil {
			n.answer(c.next, int(quorum.Acquire), next.answer(acquireScript))
		}
		a := r.answer(c.command.script)
		n.remember(c.command, a)
		n.answer(c.to, c.tag, a)
	}
}

func (n *node) answer(to driver.Receiver, tag int, a driver.Reply) {
	if a.Report.Outcome == store.Quarantined {
		a.Report = n.isShut(a.Report)
	}
	to.Receive(n.index, tag, a)
}

// idle says whether there is no need for a connection.
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

// close ends the node: what is still in line is answered as not sent.
func (n *node) close() {
	n.mu.Lock()
	n.closed = true
	n.recall.Stop()
	n.wake()
	n.mu.Unlock()
	n.cancel() // what waits for a dead server ends now
	n.mu.Lock()
	if n.wire != nil {
		n.wire.resume()
	}
	n.mu.Unlock()
	n.all.Wait()
}
