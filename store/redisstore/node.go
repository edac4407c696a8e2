package redisstore

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

// node is one Redis server with one connection to it. The peer carries calls; the node says
// which calls the server may get, and delivers what it answers. The peer's mutex guards
// the parts of the node, too.
type node struct {
	conn.Peer[call]
	fitness
	retained backlog
	clock    clockReading
	review   review
	solo     soloUse

	s     *fleet
	index int
	addr  config.Address
	log   *slog.Logger

	// unflushed is set if Flush has something to send; see router.
	unflushed atomic.Bool
	noPush    bool // the server refused a subscription at some time
	answered  bool // the server was up at some time
	settled   bell // rings while the node retires, when a call is answered
}

func newNode(index int, a config.Address, s *fleet) *node {
	n := makeNode(index, a, s)
	n.Start()
	s.topology.start(n)
	return n
}

// makeNode returns a node that sends nothing yet.
func makeNode(index int, a config.Address, s *fleet) *node {
	n := &node{s: s, index: index, addr: a}
	n.log = s.o.Logger.With("node", a.Host)
	n.Init(owner{n}, &s.o)
	n.fitness = fitness{core: &s.core, peer: &n.Peer, log: n.log, isAlone: usesAlone(s.membership, index, s.size)}
	n.retained = backlog{core: &s.core, peer: &n.Peer, encode: s.encode, settled: &n.settled}
	n.retained.init()
	n.clock = clockReading{core: &s.core, peer: &n.Peer, index: index, addr: n.Addr}
	n.review = review{core: &s.core, peer: &n.Peer, is: &n.fitness}
	return n
}

// Addr implements driver.Node.
func (n *node) Addr() string { return n.s.topology.name(n) }

// isSingle reports whether this is the only node of its store.
func (n *node) isSingle() bool { return len(n.s.nodes) == 1 }

// Put implements driver.Node.
func (n *node) Put(c driver.Call[*script.Command]) error { return n.put(callOf(c), c.More) }

// put enqueues a call and never blocks. A call for a node that is down only reads the
// clock; the first one after a pause makes the node try to reconnect. Releases wait for a
// node that has only just failed: leases may be left on it.
func (n *node) put(c call, more bool) error {
	n.Mu.Lock()
	defer n.Mu.Unlock()
	old, err := n.RefusesLocked(c.command.Script.Frees())
	if r, ok := err.(*driver.Refusal); ok && old {
		err = &driver.Refusal{Outcome: store.Unreachable, Err: r.Err} // a waiter would take an old refusal for final
	}
	if err == nil {
		err = n.refusesLocked(c.command)
	}
	if err == nil {
		n.reopenLocked(c.command)
		if c.command.Script.Keeps() {
			n.noteUseLocked()
		}
		n.s.inFlight.Add(1)
		n.retained.sendingLocked(c.command)
		c.steps, c.again = 0, notResent // it may have been redirected
		if c.timeout > 0 {
			c.since = time.Now()
		}
		n.Waiting.Push(c)
		if c.command.Script.Renews() {
			n.Waiting.Advance(yieldsToRenewal)
		}
	} else {
		n.retained.unsentLocked(c, time.Now())
	}
	n.AnnounceLocked(more)
	return err
}

// yieldsToRenewal reports whether a renewal is sent before a call that was enqueued earlier. If a server is
// slower than it is asked, requests wait until it is too late to send them, and leases would be lost to the
// client's own requests. The renewals of the client are few.
func yieldsToRenewal(c *call) bool {
	return !c.since.IsZero() && !c.command.Script.Renews()
}

// finish answers a call that stops counting as in flight.
func (n *node) finish(c call, r script.Reply) {
	n.answer(c, r)
	n.settle(1)
}

// answer delivers a reply, or passes the call on to another server. Calls that result from it
// are enqueued before settle is called, so that the store does not seem to have nothing in
// flight in between.
func (n *node) answer(c call, r script.Reply) {
	over := true
	if r.Err != nil {
		r, over = n.s.topology.redirect(n, c, r)
	}
	if over {
		n.deliver(c, r)
	}
}

// settle counts calls as answered: those of a list at once.
func (n *node) settle(calls int) {
	n.s.settled(calls)
	n.settled.ring()
}

// deliver gives a reply to the receiver of the call.
func (n *node) deliver(c call, r script.Reply) {
	if c.command.Script.Frees() {
		n.retained.answered(c, r)
	}
	if c.command == timeCommand {
		n.clock.read(r)
	} else if c.command == trackCommand {
		n.tracked(r)
	} else if c.command == settingsCommand {
		n.review.settingsRead(r)
	} else if c.command == identityCommand {
		n.review.done(r)
	} else if c.command.Script == script.UseAlone {
		n.useNoted(r)
	} else if c.look != nil {
		r.Value = r.Value.Clone()
		c.look <- looked{n.index, r}
	} else if c.leases > 1 {
		usual, others := r.Answers(c.command.Script, c.leases)
		c.to.(driver.BatchReceiver).ReceiveBatch(n.index, c.tag, c.leases, usual, others)
	} else {
		if c.command.Script == script.Arrive && r.Outcome == store.Granted {
			n.s.arrived(n, r.Value, false) // before the next caller asks
		} else if c.command.Script == script.Arrive && script.IsDenied(r.Err) {
			n.setUnmarked(&driver.Refusal{Outcome: r.Outcome, Err: r.Err})
		}
		r, next := r.Parts(c.command.Script)
		if c.next != nil {
			n.tell(c.next, int(quorum.Acquire), next.Answer(script.Acquire))
		}
		a := r.Answer(c.command.Script)
		if a.Kind == quorum.Yes && a.Token != 0 && c.command.Script.GrantsGuarded() {
			n.saw(c.command.Question.Lease.Name, a.Token, a.At) // the lock's key, since a cluster has no marks
		}
		n.tell(c.to, c.tag, a)
	}
}

// tell gives an answer to its receiver.
func (n *node) tell(to driver.Receiver, tag int, a driver.Reply) {
	if a.Report.Outcome == store.Quarantined {
		a.Report = n.quarantineSeen(a.Report)
	}
	if theirs, ok := a.Report.Err.(*script.MembershipError); ok {
		a.Report.Err = n.s.missed(theirs)
	}
	to.Receive(n.index, tag, a)
}

// tracked handles the reply to trackCommand.
func (n *node) tracked(r script.Reply) {
	if _, refused := errors.AsType[*resp.Error](r.Err); refused {
		n.noTracking(r.Err.Error())
	}
}

// noTracking warns that the server does not notify this client of replaced data.
func (n *node) noTracking(why string) {
	n.log.Warn("cannot subscribe to changes of the server's data; a replacement is noticed only when the client reconnects", "err", why)
}

// askOne sends a command to the node and waits for the answer.
func (n *node) askOne(ctx context.Context, c *script.Command) script.Reply {
	return askBy(ctx, n.put, call{command: c, timeout: n.s.o.ConnectTimeout})
}

// close closes the node: calls that are still enqueued are answered as not sent.
func (n *node) close() {
	n.Mu.Lock()
	n.retained.resend.Stop()
	n.Mu.Unlock()
	n.Close(store.ErrClosed)
}

// askBy enqueues a call with put and waits for the answer.
func askBy(ctx context.Context, put func(call, bool) error, c call) script.Reply {
	p := make(poll, 1)
	c.look = p
	if err := put(c, false); err != nil {
		said := driver.PutOutcome(err)
		return script.Reply{Outcome: said.Outcome, Err: said.Err}
	}
	select {
	case a := <-p:
		return a.Reply
	case <-ctx.Done():
		return script.Reply{Outcome: store.Pending, Err: ctx.Err()}
	}
}

// owner implements conn.Owner for a node.
type owner struct{ n *node }

func (o owner) Reach() (*conn.Pipe[call], error) { return o.n.s.topology.reach(o.n) }

func (o owner) ConnectedLocked(now time.Time, recovered bool) {
	n := o.n
	n.answered = true
	if recovered {
		n.log.Info("node can be used again")
	}
	n.dropLooksLocked()
	n.guardLocked()
	if n.s.taking.Load() && !n.isSingle() && !n.arrives && n.foreign == nil && marksLooked {
		n.arriveFirstLocked(nobody{}) // it was barred when the connection began
	}
	if n.arrives && n.s.quarantine() > n.toldLong {
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
	o.n.s.adoptOmitted()
}

func (o owner) DownLocked(err error, waited time.Duration, retry time.Time) error {
	n := o.n
	if n.answered {
		err = conn.WithoutHint(err)
	}
	if _, why := n.DownLocked(); why == nil && !n.ClosedLocked() {
		n.log.Warn("node cannot be used", "err", store.Cause(err))
	}
	n.stands = unknown
	outcome, err := membership.Classify(err, waited)
	n.retained.scheduleAfterLocked(time.Now(), retry)
	return &driver.Refusal{Outcome: outcome, Err: err}
}

func (o owner) WantsLocked() bool { return o.n.retained.list.Len() > 0 }

func (o owner) UnsentLocked(c call) { o.n.retained.unsentLocked(c, time.Now()) }

func (o owner) Unsent(c call, why error) {
	said := driver.PutOutcome(why)
	if why == conn.ErrLate {
		said.Outcome = store.TimedOut
	}
	o.n.finish(c, script.Reply{Outcome: said.Outcome, Err: said.Err})
}

func (owner) IsLate(c *call, at time.Time) bool {
	return !c.since.IsZero() && at.Sub(c.since) > c.timeout
}

func (owner) Repeats(c *call) bool { return c.command.Repeats }

func (o owner) Inline() time.Duration {
	if !o.n.s.topology.readsInline(o.n.s) {
		return 0
	}
	return time.Duration(o.n.s.inlineFor.Load())
}

func (o owner) Waiters() int64 { return o.n.s.waiting.Load() }

func (o owner) Sent() { o.n.s.progress.ring() }

// Rest gives each node and moment a turn of its own.
func (o owner) Rest(at conn.Moment) {
	turn := o.n.index
	switch at {
	case conn.AfterBreak:
		turn = (1 + o.n.index) * quorum.MaxNodes
	case conn.AfterSilence:
		turn = (1 + o.n.index) * quorum.MaxNodes * quorum.MaxNodes
	}
	o.n.s.o.Rest(turn)
}
