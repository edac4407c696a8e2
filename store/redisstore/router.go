package redisstore

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
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// router presents a cluster as the one node of a quorum. It sends each call to the member
// that has the lock's slot. A member that no longer has the slot executes nothing and
// redirects the client; the router sends the same command there, unnoticed by the
// receiver of the answer. So the validity of leases and places does not depend on where
// their slots are, or on how often they move.
type router struct {
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

func newRouter(s *fleet, seeds []config.Address) *router {
	r := &router{members: members{s: s, seeds: seeds, byHost: map[string]*node{}}, channel: rand.Text(), refreshWanted: make(chan struct{}, 1)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Addr implements driver.Node. Errors name the member that they are about.
func (r *router) Addr() string { return "cluster of " + r.seeds[0].Host }

// Put implements driver.Node.
func (r *router) Put(c driver.Call[*script.Command]) error {
	return r.put(callOf(c), c.More)
}

func (r *router) put(c call, more bool) error {
	for {
		n := r.memberFor(c.command.Slot - 1)
		if n == nil && c.command.Script.Frees() {
			n = r.anybody() // which answers that nobody has the slot, and retains the release
		}
		if n == nil {
			r.requestRefresh()
			return r.unserved()
		}
		err := n.put(c, more)
		switch {
		case err == nil:
			if more {
				n.unflushed.Store(true)
			}
			return nil
		case errors.Is(err, store.ErrClosed) && r.memberFor(c.command.Slot-1) != n:
			continue // the member was retired just now
		}
		r.requestRefresh() // another member may have taken its place
		return refusal(n, err)
	}
}

// Flush implements driver.Node.
func (r *router) Flush() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.byHost {
		if n.unflushed.Load() && n.unflushed.Swap(false) {
			n.Flush()
		}
	}
}

func (r *router) unserved() error {
	if r.isShut() {
		return store.ErrClosed
	}
	return &driver.Refusal{Outcome: store.Unsettled, Err: errUnserved}
}

// refusal names the member in an error that refuses a call.
func refusal(n *node, err error) error {
	said := driver.PutOutcome(err)
	return &driver.Refusal{Outcome: said.Outcome, Err: blamed(n, said.Err)}
}

// blamed names the member in an error.
func blamed(n *node, err error) error {
	if n.s.closed.Load() {
		return err
	}
	if errors.Is(err, store.ErrClosed) {
		err = errRetired // only this member was closed, not the store
	}
	return &memberError{n.addr.Host, store.Cause(err)}
}

// memberError is an error of one member.
type memberError struct {
	host string
	err  error
}

func (e *memberError) Error() string { return e.host + ": " + e.err.Error() }
func (e *memberError) Unwrap() error { return e.err }

// redirect handles a reply with an error. If it is a redirection, redirect sends the call
// again and returns false. Otherwise it returns the reply, with the member named in its
// error.
func (r *router) redirect(n *node, c call, said script.Reply) (script.Reply, bool) {
	if c.command.Slot == 0 {
		said.Err = blamed(n, said.Err)
		return said, true
	}
	var d *resp.Redirection
	if !errors.As(said.Err, &d) {
		lost := errors.Is(said.Err, store.ErrClosed) && !said.Sent && !r.s.closed.Load()
		if said.Sent || !lost {
			r.requestRefresh()
			said.Err = blamed(n, said.Err)
			return said, true
		}
		d = &resp.Redirection{Kind: resp.RedirectWait} // the member was retired with this call enqueued
	}
	t := trail{since: time.Now()}
	if c.trail != nil {
		t = *c.trail
	}
	t.moves++
	t.asking = d.Kind == resp.RedirectAsk
	to, pause := r.follow(n, d), time.Duration(0)
	if d.Kind == resp.RedirectWait || t.moves > mostMoves {
		pause = slotMovePause << min(t.moves, 4)
	}
	patience := c.timeout / 2 // the other half is for the answer, so that the caller hears the reason
	if c.command.Script.Frees() || c.command.Script.Breaks() {
		patience = max(patience, endRetryFor)
	}
	if d.Kind == resp.RedirectMoved {
		said.Err = fmt.Errorf("%w (the servers of the cluster disagree)", d.Unwrap())
	}
	said.Outcome, said.Err = store.Unsettled, blamed(n, said.Err)
	if to == nil || time.Since(t.since)+pause > patience || r.s.closed.Load() {
		return said, true
	}
	c.trail = &t
	if pause == 0 {
		return r.resend(to, c, said)
	}
	r.s.inFlight.Add(1)
	time.AfterFunc(pause, func() {
		if d.Kind == resp.RedirectWait {
			to = r.memberFor(c.command.Slot - 1)
		}
		if said, over := r.resend(to, c, said); over {
			n.deliver(c, said)
		}
		r.s.settled(1)
	})
	return said, false
}

// follow returns the member that a redirection leads to.
func (r *router) follow(n *node, d *resp.Redirection) *node {
	if d.Kind == resp.RedirectWait {
		return n
	}
	host, ok := cluster.MemberOf(d, n.addr.Host)
	if !ok {
		return nil
	}
	if d.Kind == resp.RedirectMoved {
		return r.moves(d.Slot, host)
	}
	return r.memberAt(host)
}

// moves records that another member has a slot.
func (r *router) moves(slot int, host string) *node {
	n, isNew := r.assign(slot, host)
	if isNew {
		r.requestRefresh()
	}
	return n
}

// resend sends the call to another member. If that fails, it returns the reply to
// deliver.
func (r *router) resend(to *node, c call, said script.Reply) (script.Reply, bool) {
	if to == nil {
		said.Err = errUnserved
		return said, true
	}
	if err := to.put(c, false); err != nil {
		why := driver.PutOutcome(refusal(to, err))
		said.Outcome, said.Err = why.Outcome, why.Err
		return said, true
	}
	return said, false
}

// close closes all members.
func (r *router) close() {
	all := r.removeAll()
	r.cancel()
	for _, n := range all {
		n.close()
	}
	r.all.Wait()
}
