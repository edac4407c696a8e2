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
)

// router is a cluster as the one node that keeps a lock: what is put goes to the
// member that has the lock's slot. A member that has it no longer says who has, and
// did nothing: the same command goes there, and whoever waits for the answer does not
// come to know. So what a lease and a place in line are worth, and whose they are,
// does not depend on where their slot is, or how often it moves.
type router struct {
	s       *Store
	seeds   []address
	channel string // how the members' channels end
	wanted  chan struct{}
	ctx     context.Context // ends when the cluster is closed for good
	cancel  context.CancelFunc
	all     sync.WaitGroup // its goroutines
	turn    int            // of who looks who has which slot

	mu      sync.RWMutex
	closed  bool
	members map[string]*node // by their addresses
	table   [slots]*node     // who has which slot; nil: nobody, or it is not known
	changed bool             // one has another than it had when that was last looked at
}

// trail is where a call has been before.
type trail struct {
	since  time.Time
	moves  int
	asking bool // the next one is to do it although it does not have the slot yet
}

const (
	// mostMoves is how often a call is sent on at once; then it takes its time.
	mostMoves = 3
	// settling is the pause before a member is asked again that is just being given a
	// slot, or has just given it away.
	settling = 5 * time.Millisecond
	// releasing is how long a release is tried that comes while its slot moves: nobody
	// would repeat it. All else is of no use once its caller has the verdict.
	releasing = 5 * time.Second
)

func newRouter(s *Store, seeds []address) *router {
	r := &router{s: s, seeds: seeds, channel: rand.Text(), wanted: make(chan struct{}, 1), members: map[string]*node{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Addr implements driver.Node. What went wrong where is in the errors.
func (r *router) Addr() string { return "cluster of " + r.seeds[0].host }

// Put implements driver.Node.
func (r *router) Put(c driver.Call) error {
	return r.put(call{command: c.Payload.(*command), timeout: c.Timeout, to: c.To, tag: c.Tag, leases: c.Leases, next: c.Next}, c.More)
}

func (r *router) put(c call, more bool) error {
	for {
		n := r.serves(c.command.slot - 1)
		if n == nil && c.command.script.frees() {
			n = r.anybody() // who says that nobody has the slot, and retains it
		}
		if n == nil {
			r.want()
			return r.unserved()
		}
		err := n.put(c, more)
		switch {
		case err == nil:
			if more {
				n.unflushed.Store(true)
			}
			return nil
		case errors.Is(err, store.ErrClosed) && r.serves(c.command.slot-1) != n:
			continue // it was retired just now
		}
		r.want() // another may have taken its place
		return n.refusal(err)
	}
}

// Flush implements driver.Node.
func (r *router) Flush() {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, n := range r.members {
		if n.unflushed.Load() && n.unflushed.Swap(false) {
			n.Flush()
		}
	}
}

func (r *router) unserved() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return store.ErrClosed
	}
	return &driver.Refusal{Outcome: store.Unsettled, Err: errUnserved}
}

// refusal says which member takes no calls.
func (n *node) refusal(err error) error {
	said := driver.PutOutcome(err)
	return &driver.Refusal{Outcome: said.Outcome, Err: n.blamed(said.Err)}
}

// blamed says which member an error is about.
func (n *node) blamed(err error) error {
	if n.s.closed.Load() {
		return err
	}
	if errors.Is(err, store.ErrClosed) {
		err = errRetired // nobody has closed the store
	}
	return fmt.Errorf("%s: %w", n.addr.host, err)
}

// serves is who has a slot.
func (r *router) serves(slot int) *node {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.table[slot]
}

// anybody is one of the members, if possible one that is there.
func (r *router) anybody() (found *node) {
	for _, n := range r.everybody() {
		n.mu.Lock()
		there := n.wire != nil
		n.mu.Unlock()
		if found = n; there {
			break
		}
	}
	return found
}

// member is the one at that address. The mutex is held.
func (r *router) member(host string) *node {
	n := r.members[host]
	if n == nil && !r.closed {
		a := r.seeds[0]
		a.host = host
		n = newNode(0, a, r.s)
		r.members[host] = n
	}
	return n
}

// settled takes in an answer, and says whether it is one: otherwise the call is
// under way again. Of what comes from a member it says which.
func (r *router) settled(n *node, c call, said reply) (reply, bool) {
	if said.err == nil {
		return said, true
	}
	if c.command.slot == 0 {
		said.err = n.blamed(said.err)
		return said, true
	}
	var d *redirection
	if !errors.As(said.err, &d) {
		lost := errors.Is(said.err, store.ErrClosed) && !said.sent && !r.s.closed.Load()
		if said.sent || !lost {
			r.want()
			said.err = n.blamed(said.err)
			return said, true
		}
		d = &redirection{kind: unsettled} // it was retired with this in line
	}
	t := trail{since: time.Now()}
	if c.trail != nil {
		t = *c.trail
	}
	t.moves++
	t.asking = d.kind == moving
	to, pause := r.follow(n, d), time.Duration(0)
	if d.kind == unsettled || t.moves > mostMoves {
		pause = settling << min(t.moves, 4)
	}
	patience := c.timeout
	if c.command.script.frees() {
		patience = releasing
	}
	if d.kind == moved {
		said.err = fmt.Errorf("%s (the servers of the cluster do not agree)", d.said)
	}
	said.outcome, said.err = store.Unsettled, n.blamed(said.err)
	if to == nil || time.Since(t.since)+pause > patience || r.s.closed.Load() {
		return said, true
	}
	c.trail = &t
	if pause == 0 {
		return r.resend(to, c, said)
	}
	r.s.inFlight.Add(1)
	time.AfterFunc(pause, func() {
		if d.kind == unsettled {
			to = r.serves(c.command.slot - 1)
		}
		if said, over := r.resend(to, c, said); over {
			n.deliver(c, said)
		}
		r.s.inFlight.Add(-1)
	})
	return said, false
}

// follow is who to ask next.
func (r *router) follow(n *node, d *redirection) *node {
	if d.kind == unsettled {
		return n
	}
	host, ok := d.member(n.addr.host)
	if !ok {
		return nil
	}
	if d.kind == moved {
		return r.moves(d.slot, host)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.member(host)
}

// moves takes in that a slot is another's.
func (r *router) moves(slot int, host string) *node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.member(host)
	if n != nil && r.table[slot] != n {
		r.table[slot], r.changed = n, true
		r.want()
	}
	return n
}

// resend has another member asked. Otherwise it says what there is to say of that.
func (r *router) resend(to *node, c call, said reply) (reply, bool) {
	if to == nil {
		said.err = errUnserved
		return said, true
	}
	if err := to.put(c, false); err != nil {
		why := driver.PutOutcome(to.refusal(err))
		said.outcome, said.err = why.Outcome, why.Err
		return said, true
	}
	return said, false
}

// close ends all members.
func (r *router) close() {
	r.mu.Lock()
	r.closed = true
	members := r.members
	r.members = nil
	r.mu.Unlock()
	r.cancel()
	for _, n := range members {
		n.close()
	}
	r.all.Wait()
}
