package route

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Router presents a cluster as the one node of a quorum. It sends each call to the member
// that has the lock's slot. A member that no longer has the slot executes nothing and
// redirects the client; the router sends the same command there, unnoticed by the
// receiver of the answer. So the validity of leases and places does not depend on where
// their slots are, or on how often they move.
type Router struct {
	members
	channel       string // suffix of the members' channels
	refreshWanted chan struct{}
	noEpoch       bool            // the user may not read the epoch; of the refresh loop
	ctx           context.Context // ends when the cluster is closed
	cancel        context.CancelFunc
	all           sync.WaitGroup // goroutines of the router
}

const (
	// mostMoves is how often a call is redirected without a pause.
	mostMoves = 3
	// slotMovePause is the pause before a call is sent again to a member whose slot is moving.
	slotMovePause = 5 * time.Millisecond
	// endRetryFor is how long, at least, a release or a break is tried while its slot moves.
	// Nothing else would repeat a release, and an operator waits for a break. Other calls are
	// useless once their caller has a verdict.
	endRetryFor = 5 * time.Second
)

var (
	errUnserved = errors.New("no server of the cluster serves the slot of this lock at present")
	errRetired  = errors.New("the server is not a master of the cluster any more")
)

// New makes s the store of the cluster that has those members.
func New(s *node.Shared, seeds []config.Address) *Router {
	r := &Router{members: members{s: s, seeds: seeds, byHost: map[string]*node.Node{}}, channel: rand.Text(), refreshWanted: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	s.Topology, s.KeyOf, s.Class, s.Channel = clustered{r: r}, cluster.Place, store.Efficiency, r.clusterChannel(unsharded)
	s.Driver.Nodes = []driver.Node[*script.Command]{r}
	return r
}

// Addr implements driver.Node. Errors name the member that they are about.
func (r *Router) Addr() string { return "cluster of " + r.seeds[0].Host }

// Put implements driver.Node.
func (r *Router) Put(c driver.Call[*script.Command]) error {
	return r.Enqueue(node.CallOf(c), c.More)
}

// Enqueue sends a call to the member that has its slot. It never blocks.
func (r *Router) Enqueue(c node.Call, more bool) error {
	for {
		n := r.MemberFor(c.Command.Slot - 1)
		if n == nil && c.Command.Script.Does(script.Frees) {
			n = r.anybody() // which answers that nobody has the slot, and retains the release
		}
		if n == nil {
			r.requestRefresh()
			return r.unserved()
		}
		err := n.Enqueue(c, more)
		switch {
		case err == nil:
			if more {
				n.Unflushed.Store(true)
			}
			return nil
		case errors.Is(err, store.ErrClosed) && r.MemberFor(c.Command.Slot-1) != n:
			continue // the member was retired just now
		}
		r.requestRefresh() // another member may have taken its place
		return refusal(n, err)
	}
}

// Flush implements driver.Node.
func (r *Router) Flush() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.byHost {
		if n.Unflushed.Load() && n.Unflushed.Swap(false) {
			n.Flush()
		}
	}
}

func (r *Router) unserved() error {
	if r.isShut() {
		return store.ErrClosed
	}
	return &driver.Refusal{Outcome: store.Unsettled, Err: errUnserved}
}

// refusal names the member in an error that refuses a call.
func refusal(n *node.Node, err error) error {
	said := driver.PutOutcome(err)
	return &driver.Refusal{Outcome: said.Outcome, Err: blamed(n, said.Err)}
}

// blamed names the member in an error.
func blamed(n *node.Node, err error) error {
	if n.Shared.Closed.Load() {
		return err
	}
	if errors.Is(err, store.ErrClosed) {
		err = errRetired // only this member was closed, not the store
	}
	return &memberError{n.Address.Host, store.Cause(err)}
}

// memberError is an error of one member.
type memberError struct {
	host string
	err  error
}

func (e *memberError) Error() string { return e.host + ": " + e.err.Error() }
func (e *memberError) Unwrap() error { return e.err }

// WithoutMember returns an error of a member without its address, which a text about all of them has.
func WithoutMember(err error) error {
	if e, ok := errors.AsType[*memberError](err); ok {
		return e.err
	}
	return err
}

// Prepare connects to the member that has a lock if nothing has been sent to it yet:
// connecting may take longer than the timeout for an answer.
func (r *Router) Prepare(ctx context.Context, name string) {
	n := r.MemberOf(name)
	if n == nil {
		return
	}
	n.Mu.Lock()
	tried := n.TriedLocked()
	n.Mu.Unlock()
	if !tried {
		n.Ask(ctx, node.PingCommand)
	}
}

// Ask sends a command to the member that has a lock, and waits for the answer.
func (r *Router) Ask(ctx context.Context, name string, c *script.Command) (script.Reply, string) {
	r.Prepare(ctx, name)
	return node.AskBy(ctx, r.Enqueue, node.Call{Command: c, Timeout: r.s.NodeTimeout(r.s.Config.MaxTTL)}), r.Addr()
}

// redirect handles a reply with an error. If it is a redirection, redirect sends the call
// again and returns false. Otherwise it returns the reply, with the member named in its
// error.
func (r *Router) redirect(n *node.Node, c node.Call, said script.Reply) (script.Reply, bool) {
	if c.Command.Slot == 0 {
		said.Err = blamed(n, said.Err)
		return said, true
	}
	var d *resp.Redirection
	if !errors.As(said.Err, &d) {
		lost := errors.Is(said.Err, store.ErrClosed) && !said.Sent && !r.s.Closed.Load()
		if said.Sent || !lost {
			r.requestRefresh()
			said.Err = blamed(n, said.Err)
			return said, true
		}
		d = &resp.Redirection{Kind: resp.RedirectWait} // the member was retired with this call enqueued
	}
	t := node.Trail{Since: time.Now()}
	if c.Trail != nil {
		t = *c.Trail
	}
	t.Moves++
	t.Asking = d.Kind == resp.RedirectAsk
	if resp.CodeOf(said.Err) == resp.ClusterDown { // a member that was reset or cut off redirects nobody
		r.requestRefresh()
	}
	to, pause := r.follow(n, d), time.Duration(0)
	if d.Kind == resp.RedirectWait || t.Moves > mostMoves {
		pause = slotMovePause << min(t.Moves, 4)
	}
	patience := c.Timeout / 2 // the other half is for the answer, so that the caller hears the reason
	if c.Command.Script.Does(script.Frees) || c.Command.Script.Does(script.Breaks) {
		patience = max(patience, endRetryFor)
	}
	if d.Kind == resp.RedirectMoved {
		said.Err = fmt.Errorf("%w (the servers of the cluster disagree)", d.Unwrap())
	}
	said.Outcome, said.Err = store.Unsettled, blamed(n, said.Err)
	if to == nil || time.Since(t.Since)+pause > patience || r.s.Closed.Load() {
		return said, true
	}
	c.Trail = &t
	if pause == 0 {
		return r.resend(to, c, said)
	}
	r.s.InFlight.Add(1)
	time.AfterFunc(pause, func() {
		if d.Kind == resp.RedirectWait {
			to = r.MemberFor(c.Command.Slot - 1)
		}
		if said, over := r.resend(to, c, said); over {
			n.Deliver(c, said)
		}
		r.s.Settled(1)
	})
	return said, false
}

// follow returns the member that a redirection leads to.
func (r *Router) follow(n *node.Node, d *resp.Redirection) *node.Node {
	if d.Kind == resp.RedirectWait {
		return n
	}
	host, ok := cluster.MemberOf(d, n.Address.Host)
	if !ok {
		return nil
	}
	if d.Kind == resp.RedirectMoved {
		return r.moves(d.Slot, host)
	}
	return r.memberAt(host)
}

// moves records that another member has a slot.
func (r *Router) moves(slot int, host string) *node.Node {
	n, isNew := r.assign(slot, host)
	if isNew {
		r.requestRefresh()
	}
	return n
}

// resend sends the call to another member. If that fails, it returns the reply to
// deliver.
func (r *Router) resend(to *node.Node, c node.Call, said script.Reply) (script.Reply, bool) {
	if to == nil {
		said.Err = errUnserved
		return said, true
	}
	if err := to.Enqueue(c, false); err != nil {
		why := driver.PutOutcome(refusal(to, err))
		said.Outcome, said.Err = why.Outcome, why.Err
		return said, true
	}
	return said, false
}

// Close closes all members.
func (r *Router) Close() {
	all := r.removeAll()
	r.cancel()
	for _, n := range all {
		n.Shut()
	}
	r.all.Wait()
}

// clustered is the topology of the members of a cluster, among which a router finds the
// one that has a lock.
type clustered struct {
	node.Independent
	r *Router
}

// Fit says nothing about a replica: redirections notice it.
func (clustered) Fit(s *node.Session, id membership.Identity) error {
	id.Mode, id.Role = "", ""
	if err := id.Unfit(); err != nil {
		s.Node.Log.Warn("the server can lose locks", "err", err)
	}
	return nil
}

func (t clustered) Listen(s *node.Session, hello resp.Value) error { return t.r.listen(s, hello) }

func (t clustered) Redirect(n *node.Node, c node.Call, said script.Reply) (script.Reply, bool) {
	return t.r.redirect(n, c, said)
}
