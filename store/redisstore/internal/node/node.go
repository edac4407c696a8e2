package node

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Node is one Redis server with one connection to it. The peer carries calls; the node says
// which calls the server may get, and delivers what it answers. The peer's mutex guards
// the parts of the node, too.
type Node struct {
	conn.Peer[Call]
	fitness
	retained backlog
	clock    clockReading
	review   review
	solo     soloUse

	Shared  *Shared
	index   int
	Address config.Address
	Log     *slog.Logger

	// Unflushed is set if Flush has something to send; see package route.
	Unflushed atomic.Bool
	noPush    bool // the server refused a subscription at some time
	answered  bool // the server was up at some time
	settled   Bell // rings while the node retires, when a call is answered
}

func New(index int, a config.Address, s *Shared) *Node {
	n := makeNode(index, a, s)
	n.Start()
	return n
}

// makeNode returns a node that sends nothing yet.
func makeNode(index int, a config.Address, s *Shared) *Node {
	n := &Node{Shared: s, index: index, Address: a}
	n.Log = s.Config.Logger.With("node", a.Host)
	n.Init(owner{n}, &s.Config)
	n.fitness = fitness{shared: s, peer: &n.Peer, log: n.Log, isAlone: usesAlone(s.Membership, index, s.Size)}
	n.retained = backlog{shared: s, peer: &n.Peer, encode: s.Encode, settled: &n.settled}
	n.retained.init()
	n.clock = clockReading{shared: s, peer: &n.Peer, index: index, addr: n.Addr}
	n.review = review{shared: s, peer: &n.Peer, is: &n.fitness}
	return n
}

// Addr implements driver.Node.
func (n *Node) Addr() string { return n.Shared.Topology.Name(n) }

// isSingle reports whether this is the only node of its store.
func (n *Node) isSingle() bool { return n.Shared.Size == 1 }

// Put implements driver.Node.
func (n *Node) Put(c driver.Call[*script.Command]) error { return n.Enqueue(CallOf(c), c.More) }

// Enqueue enqueues a call and never blocks. A call for a node that is down only reads the
// clock; the first one after a pause makes the node try to reconnect. Releases wait for a
// node that has only just failed: leases may be left on it.
func (n *Node) Enqueue(c Call, more bool) error {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	old, err := n.RefusesLocked(c.Command.Script.Does(script.Frees))
	if r, ok := err.(*driver.Refusal); ok && old {
		err = &driver.Refusal{Outcome: store.Unreachable, Err: r.Err} // a waiter would take an old refusal for final
	}
	if err == nil {
		err = n.refusesLocked(c.Command)
	}
	now := time.Now()
	if err == nil {
		n.reopenLocked(c.Command)
		if c.Command.Script.Does(script.Keeps) {
			n.noteUseLocked(now)
		}
		n.Shared.InFlight.Add(1)
		n.retained.sendingLocked(c.Command)
		c.steps, c.again = 0, notResent // it may have been redirected
		if c.Timeout > 0 {
			c.since = now
		}
		n.Waiting.Push(c)
		if c.Command.Script.Does(script.Renews) {
			n.Waiting.Advance(yieldsToRenewal)
		}
	} else {
		n.retained.unsentLocked(c, now)
	}
	n.AnnounceLocked(more)
	return err
}

// yieldsToRenewal reports whether a renewal is sent before a call that was enqueued earlier. If a server is
// slower than it is asked, requests wait until it is too late to send them, and leases would be lost to the
// client's own requests. The renewals of the client are few.
func yieldsToRenewal(c *Call) bool {
	return !c.since.IsZero() && !c.Command.Script.Does(script.Renews)
}

// finish answers a call that stops counting as in flight.
func (n *Node) finish(c Call, r script.Reply) {
	n.answer(c, r)
	n.settle(1)
}

// answer delivers a reply, or passes the call on to another server. Calls that result from it
// are enqueued before settle is called, so that the store does not seem to have nothing in
// flight in between.
func (n *Node) answer(c Call, r script.Reply) {
	over := true
	if r.Err != nil {
		r, over = n.Shared.Topology.Redirect(n, c, r)
	}
	if over {
		n.Deliver(c, r)
	}
}

// settle counts calls as answered: those of a list at once.
func (n *Node) settle(calls int) {
	n.Shared.Settled(calls)
	n.settled.Ring()
}

// Deliver gives a reply to the receiver of the call.
func (n *Node) Deliver(c Call, r script.Reply) {
	if c.Command.Script.Does(script.Frees) {
		n.retained.answered(c, r)
	}
	switch {
	case c.take != nil:
		c.take(r)
	case c.Poll != nil:
		r.Value = r.Value.Clone()
		c.Poll <- Answer{n.index, r}
	case c.leases > 1:
		usual, others := r.Answers(c.Command.Script, c.leases)
		c.To.(driver.BatchReceiver).ReceiveBatch(n.index, c.Tag, c.leases, usual, others)
	default:
		if c.Command.Script == script.Arrive && r.Outcome == store.Granted {
			n.Arrived(r.Value, false) // before the next caller asks
		} else if c.Command.Script == script.Arrive && script.IsDenied(r.Err) {
			n.setUnmarked(&driver.Refusal{Outcome: r.Outcome, Err: r.Err})
		}
		if c.next != nil {
			var next script.Reply
			r, next = r.Parts(c.Command.Script)
			n.tell(c.next, int(quorum.Acquire), next.Answer(script.Acquire))
		}
		a := r.Answer(c.Command.Script)
		if a.Kind == quorum.Yes && a.Token != 0 && c.Command.Script.Does(script.Takes|script.Draws|script.Gated) {
			n.saw(c.Command.Question.Lease.Name, a.Token, a.At) // the lock's key, since a cluster has no marks
		}
		n.tell(c.To, c.Tag, a)
	}
}

// tell gives an answer to its receiver.
func (n *Node) tell(to driver.Receiver, tag int, a driver.Reply) {
	if a.Report.Outcome == store.Quarantined {
		a.Report = n.quarantineSeen(a.Report)
	}
	if theirs, ok := a.Report.Err.(*script.MembershipError); ok {
		a.Report.Err = n.Shared.Others.Missed(theirs)
	}
	to.Receive(n.index, tag, a)
}

// tracked handles the reply to trackCommand.
func (n *Node) tracked(r script.Reply) {
	if _, refused := errors.AsType[*resp.Error](r.Err); refused {
		n.noTracking(r.Err.Error())
	}
}

// noTracking warns that the server does not notify this client of replaced data.
func (n *Node) noTracking(why string) {
	n.Log.Warn("cannot subscribe to changes of the server's data; a replacement is noticed only when the client reconnects", "err", why)
}

// Ask sends a command to the node and waits for the answer.
func (n *Node) Ask(ctx context.Context, c *script.Command) script.Reply {
	return AskBy(ctx, n.Enqueue, Call{Command: c, Timeout: n.Shared.Config.ConnectTimeout})
}

// Drain waits until the node has nothing more to answer, or ctx ends, and then closes it.
func (n *Node) Drain(ctx context.Context) {
	settled := n.settled.Await()
	for n.Retire() && ctx.Err() == nil {
		select {
		case <-settled:
		case <-ctx.Done():
		}
	}
	n.Shut()
}

// Unreleased returns the releases that the server has not executed.
func (n *Node) Unreleased() []driver.Question {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.retained.list.All()
}

// RetainedLocked returns how many releases the server has not executed, and how many were discarded.
func (n *Node) RetainedLocked() (count int, dropped uint64) {
	return n.retained.list.Len(), n.retained.list.Dropped()
}

// Identity returns what the server reported about itself.
func (n *Node) Identity() membership.Identity {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	return n.server
}

// Shut closes the node: calls that are still enqueued are answered as not sent.
func (n *Node) Shut() {
	n.Mu.Lock()
	n.retained.resend.Stop()
	n.Mu.Unlock()
	n.Close(store.ErrClosed)
}

// Unfinished returns how many of the node's calls Close need not wait for, and whether
// releases for it are still pending that can be delivered.
func (n *Node) Unfinished() (unheard int64, owes bool) {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	if w := n.PipeLocked(); w != nil {
		flight, unsent := w.DoubtedLocked()
		return int64(flight), unsent
	}
	if !n.ReachedLocked() { // nothing was ever sent
		return int64(n.Waiting.Len()), false
	}
	for c := range n.Waiting.All {
		owes = owes || c.Command.Script.Does(script.Frees)
	}
	return int64(n.Waiting.Len()), owes || n.retained.list.Len() > 0
}

// owner implements conn.Owner for a node.
type owner struct{ n *Node }

func (o owner) Reach() (*conn.Pipe[Call], error) { return o.n.Shared.Topology.Reach(o.n) }

func (o owner) ConnectedLocked(now time.Time, recovered bool) {
	n := o.n
	n.answered = true
	if recovered {
		n.Log.Info("node can be used again")
	}
	n.dropLooksLocked()
	n.guardLocked()
	if n.Shared.Taking.Load() && !n.isSingle() && !n.arrives && n.foreign == nil && MarksLooked {
		n.arriveFirstLocked(Nobody{}) // it was barred when the connection began
	}
	if n.arrives && n.Shared.Quarantine() > n.toldLong {
		n.lookLocked() // this was learned from another server meanwhile
	}
	n.solo.until = time.Time{} // another server may answer
	n.retained.connectedLocked(n.server.RunID, now)
	n.clock.startLocked(now)
	n.review.startLocked(now)
}

func (o owner) Connected() {
	away, why := o.n.takeForeign()
	for _, c := range away {
		o.n.finish(c, script.Reply{Outcome: why.Outcome, Err: why.Err})
	}
	o.n.Shared.Others.Connected()
}

func (o owner) DownLocked(err error, waited time.Duration, retry time.Time) error {
	n := o.n
	if n.answered {
		err = conn.WithoutHint(err)
	}
	if _, why := n.DownLocked(); why == nil && !n.ClosedLocked() {
		n.Log.Warn("node cannot be used", "err", store.Cause(err))
	}
	n.stands = Unknown
	outcome, err := membership.Classify(err, waited)
	n.retained.scheduleAfterLocked(time.Now(), retry)
	return &driver.Refusal{Outcome: outcome, Err: err}
}

func (o owner) WantsLocked() bool { return o.n.retained.list.Len() > 0 }

func (o owner) UnsentLocked(c Call) { o.n.retained.unsentLocked(c, time.Now()) }

func (o owner) Unsent(c Call, why error) {
	said := driver.PutOutcome(why)
	if why == conn.ErrLate {
		said.Outcome = store.TimedOut
	}
	o.n.finish(c, script.Reply{Outcome: said.Outcome, Err: said.Err})
}

func (owner) IsLate(c *Call, at time.Time) bool {
	return !c.since.IsZero() && at.Sub(c.since) > c.Timeout
}

func (owner) Repeats(c *Call) bool { return c.Command.Repeats }

func (o owner) Inline() time.Duration {
	if !o.n.isSingle() {
		return 0
	}
	return time.Duration(o.n.Shared.InlineFor.Load())
}

func (o owner) Waiters() int64 { return o.n.Shared.Waiting.Load() }

// From this many calls in flight on, for one node or for all of several, a caller lets others enqueue
// their calls before it sends fewer than a list: it is likely that the callers of those just answered
// have more. The numbers were measured with 1 to 256 goroutines. With five servers each write counts.
const manyForOne, manyForSeveral = 16, 8

// Gathers implements conn.Owner. Only the first node gathers: a caller has enqueued its call for each. One
// server nearby keeps up with several small writes, and is better given work at once.
func (o owner) Gathers(near bool) bool {
	flight := o.n.Shared.InFlight.Load()
	if o.n.isSingle() {
		return !near && flight > manyForOne
	}
	return o.n.index == 0 && flight > manyForSeveral
}

func (o owner) Sent() { o.n.Shared.Progress.Ring() }

// Rest gives each node and moment a turn of its own.
func (o owner) Rest(at conn.Moment) {
	turn := o.n.index
	switch at {
	case conn.AfterBreak:
		turn = (1 + o.n.index) * quorum.MaxNodes
	case conn.AfterSilence:
		turn = (1 + o.n.index) * quorum.MaxNodes * quorum.MaxNodes
	}
	o.n.Shared.Config.Rest(turn)
}
