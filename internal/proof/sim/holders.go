package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
)

// holders judges the holders of locks: a lock has one at a time, each is notified of a loss in
// time, and a release does what it reports.
type holders struct {
	*findings
	w      *world
	claims []*claim // not known to be over
	locks  []lockRecord
	kept   []*claim // that their holders have not begun to release
}

// lockRecord is what is known of one lock.
type lockRecord struct {
	tokens  map[int]uint64 // of the last grant of each slot
	readers bool           // the last grant was that of a reader
	writer  uint64         // token of the last writer
	written map[int]uint64 // largest token the resource has seen, of each slot

	grants     int           // of it
	leastUntil time.Duration // a least hold keeps it until then
}

// grants judges a new lease. If two leases overlap, the later one begins while the holder
// of the earlier one still trusts it. So this is the moment to compare them.
func (h *holders) grants(c *claim) {
	c.at = h.w.now()
	c.owner = h.hist.number(c.lease.Owner())
	h.claims = append(h.claims, c)
	h.kept = append(h.kept, c)
	o := h.w.owner(c.owner)
	if o.holder != nil {
		h.wrong(Owner, "%s and %s", h.name(o.holder), h.name(c))
	}
	o.holder = c
	// If an operator has freed the lock before the owner knew that it had it, the owner may learn late
	// of the lease that is over. Or it asked on: if a majority has granted it the lock again, its lease
	// is one like any other.
	if c.freed = o.freed && h.on(c) < moreThanHalf(len(h.w.nodes)); o.cut && !c.freed {
		h.tally.Regained++
	}
	if o.least = 0; c.minHold > 0 && c.k.c.goneOn < c.at {
		o.least = c.at + c.minHold
	}
	h.locks[c.lock].leastUntil = max(h.locks[c.lock].leastUntil, c.at+c.minHold)
	h.tally.Grants++
	h.locks[c.lock].grants++
	if c.ended() || c.lease.Err() != nil {
		return // over before anybody could act on it
	}
	if !c.freed {
		h.draws(c)
	}
	h.compare(c)
}

// names notes which lease an operator ends. Its holder may have been told to hold the lock for
// longer, and if the lock is freed at once, others may have it before the holder is notified.
func (h *holders) names(n note) {
	h.tally.Named++
	o := h.w.owner(h.hist.number(n.text))
	o.named, o.freed, o.least = true, o.freed || n.frees, 0
	if n.frees && o.holder != nil {
		o.holder.freed = true
	}
}

// cuts notes that a node has ended the lease of an owner for an operator.
func (h *holders) cuts(number int) {
	o := h.w.owner(number)
	if o.cut = true; o.freed && o.holder != nil {
		o.holder.freed = true
	}
}

func (h *holders) name(c *claim) string {
	return fmt.Sprintf("o%d (c%d.w%d, lock %d, token %d)", c.owner, c.k.c.index+1, c.k.index, c.lock+1, c.lease.Token())
}

// draws judges the token of a new lease: it is larger than all before it in its slot. That of
// a reader may be that of the readers before it, and over several servers smaller, but it is
// larger than that of every writer.
func (h *holders) draws(c *claim) {
	r := &h.locks[c.lock]
	t, last := uint64(c.lease.Token()), r.tokens[c.slot()]
	if c.shares() && r.readers {
		if len(h.w.nodes) > 1 {
			last = min(last, r.writer+1)
		}
		last-- // the same is enough
	}
	if t <= last {
		h.wrong(Token, "%s after token %d", h.name(c), last)
		return
	}
	r.tokens[c.slot()], r.readers = max(t, r.tokens[c.slot()]), c.shares()
	if !r.readers {
		r.writer = t
	}
}

// compare looks for another valid holder beside c, which is valid now.
func (h *holders) compare(c *claim) {
	rule := Exclusion
	if !c.kind().Shared && !c.kind().IsMutex() {
		rule = Slots
	}
	weight, trusted, together := c.weight, c.weight, 1
	for _, o := range h.claims {
		if o == c || o.lock != c.lock || o.over || !o.k.c.running() || o.ended() || o.freed || c.freed {
			continue
		}
		valid := o.lease.Err() == nil
		if valid {
			weight += o.weight
			together++
		}
		if valid || !h.drowsy(o) {
			trusted += o.weight
		}
		switch {
		case !c.excludes(o):
		case valid:
			h.wrong(rule, "%s and %s", h.name(o), h.name(c))
		case !h.drowsy(o):
			h.wrong(ToldLate, "%s still trusts its context while %s has the lock", h.name(o), h.name(c))
		}
	}
	h.tally.Crowd = max(h.tally.Crowd, together)
	if rule == Slots && weight > c.kind().Limit {
		h.wrong(Permits, "%d of lock %d, which has %d: %s is one too many", weight, c.lock+1, c.kind().Limit, h.name(c))
	} else if rule == Slots && trusted > c.kind().Limit {
		h.wrong(ToldLate, "the holders of %d permits of lock %d, which has %d, trust their contexts, with %s", trusted, c.lock+1, c.kind().Limit, h.name(c))
	}
}

// drowsy reports whether a lease's holder may not have been notified yet, because its machine
// has just woken up: timers stood still, and the client reads its clock four times a second.
// Err is right at once, the context a little later.
func (h *holders) drowsy(c *claim) bool { return h.w.now() < c.k.c.wokeAt+260*time.Millisecond }

// goesOn judges the leases of a client that was paused: none of them is valid if another
// client's lease of the same lock is.
func (h *holders) goesOn(cl *client) {
	for _, c := range h.claims {
		if c.k.c == cl {
			continue
		}
		for _, o := range h.claims {
			if o.k.c == cl && o.lock == c.lock && c.k.c.running() && !c.over && !c.ended() && c.lease.Err() == nil {
				h.compare(c)
				break
			}
		}
	}
}

// pauses notes that a client is paused. Its timers then fire earlier than its
// clock says, so that its least holds cannot be judged.
func (h *holders) pauses(cl *client) {
	for _, c := range h.claims {
		if c.k.c == cl {
			h.w.owner(c.owner).least = 0
		}
	}
}

// died forgets the leases of a dead process.
func (h *holders) died(cl *client) {
	for _, c := range h.claims {
		c.over = c.over || c.k.c == cl
	}
}

// ends judges the end of a lease: nobody else can have the lock yet, nor during the notice
// that the holder was promised.
func (h *holders) ends(c *claim) {
	c.over = true
	err := c.lease.Err()
	h.recordEnd(c, err)
	if context.Cause(c.lease.Context()) == nil {
		h.wrong(ToldLate, "%s is over, its context is not", h.name(c))
	}
	var lost *leasehold.LostError
	if !errors.As(err, &lost) {
		return
	}
	h.tally.Losses++
	o := h.w.owner(c.owner)
	o.least = 0
	if lost.Broken != nil {
		h.tally.Broken++
		if !o.named {
			h.wrong(Answers, "%s was broken, and the operator was shown another lease", h.name(c))
		}
	}
	if c.last && !o.named {
		h.wrong(Waiting, "%s was lost though nothing was wrong: %v", h.name(c), lost.Reason)
	}
	if h.w.script.Roll { // a majority of what, depends on whom you ask
		return
	}
	if asleep := h.drowsy(c) || h.w.now() < c.k.c.goneOn+time.Millisecond; asleep || c.giving || c.freed {
		return
	}
	if on := h.on(c); !o.named && lost.Cause == leasehold.LostDenied && on >= moreThanHalf(len(h.w.nodes)) {
		h.wrong(Answers, "%s was said to be gone, and is on %d nodes", h.name(c), on)
	}
	h.tally.Notified++
	if h.jumped(c) {
		return
	}
	if free := h.freeIn(c); free < c.notice {
		h.wrong(ToldLate, "%s was told %v before others can have a majority, not %v", h.name(c), free, c.notice)
	}
}

// recordEnd records the end of a lease.
func (h *holders) recordEnd(c *claim, err error) {
	h.hist.mix(factEnd, uint64(c.owner))
	h.hist.mixText(class(err))
	if h.hist.keep {
		h.hist.write(fmt.Sprintf("c%d.w%d", c.k.c.index+1, c.k.index), "lease over: o%d, lock %d, token %d: %s", c.owner, c.lock+1, c.lease.Token(), class(err))
	}
}

// jumped reports whether the clock of a node was set right while c was held. The node may have
// dropped the lease then, and others do not count what it grants.
func (h *holders) jumped(c *claim) bool {
	return slices.ContainsFunc(h.w.nodes, func(n *node) bool { return n.setRight > c.at })
}

// freeIn is when others can have a majority of nodes, if c is not renewed.
func (h *holders) freeIn(c *claim) time.Duration {
	var in []time.Duration
	for _, n := range h.w.nodes {
		d := max(n.quarantineLeft(), n.discounted-h.w.now())
		if l, ok := heldBy(n, c.lock, c.owner); ok {
			d = max(d, n.trueLength(l.left))
		}
		in = append(in, d)
	}
	slices.Sort(in)
	return in[moreThanHalf(len(in))-1]
}

// on is how many nodes have c.
func (h *holders) on(c *claim) (nodes int) {
	for _, n := range h.w.nodes {
		if _, ok := heldBy(n, c.lock, c.owner); ok {
			nodes++
		}
	}
	return nodes
}

// moreThanHalf is the judge's own idea of a majority.
func moreThanHalf(nodes int) int { return nodes/2 + 1 }

// writes has the resource judge a holder that believes in its lease.
func (h *holders) writes(c *claim) {
	h.tally.Writes++
	r := &h.locks[c.lock]
	if c.shares() && len(h.w.nodes) > 1 {
		return // the resource checks the tokens of writers only
	}
	if t, last := uint64(c.lease.Token()), r.written[c.slot()]; t < last && c.freed {
		h.tally.Refused++ // as it must
	} else if t < last {
		h.wrong(Stale, "%s writes after token %d", h.name(c), last)
	} else {
		r.written[c.slot()] = t
	}
}

// releases judges the outcome of a release that its holder was given.
func (h *holders) releases(c *claim, err error) {
	still := h.on(c)
	if c.freed || h.w.script.Roll || h.w.owner(c.owner).revived {
		still = 0 // how many are too many depends on the list; or it came back by a Replay
	}
	if err != nil {
		if errors.Is(err, leasehold.ErrLost) && c.lease.Err() == leasehold.ErrReleased && still >= moreThanHalf(len(h.w.nodes)) {
			h.wrong(Answers, "%s was said to be given up before its release, and is on %d nodes", h.name(c), still)
		}
		if c.last && !errors.Is(err, leasehold.ErrLost) {
			h.wrong(Answers, "%s could not be released though nothing was wrong: %s", h.name(c), class(err))
		}
		if c.minHold > 0 && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			h.w.owner(c.owner).left = true // the least hold was cut off: the lock ends by its TTL, as documented
		}
		return
	}
	h.tally.Releases++
	if still > len(h.w.nodes)-moreThanHalf(len(h.w.nodes)) {
		h.wrong(Answers, "%s was released, and is still on %d nodes", h.name(c), still)
	}
}

// held is the lease of a lock at a node.
type held struct {
	owner  int
	weight int64
	left   time.Duration // by the node's clock
	// Of a lock that several can hold: its number among the node's grants, its token, and its slots.
	number int64
	token  uint64
	slots  string
}

// heldAt returns the leases of a lock at a node.
func heldAt(n *node, lock int) (all []held) {
	value, left, ok := n.server.Value(lockName(lock))
	switch {
	case !ok:
		return nil
	case !isRecord(value):
		return []held{{owner: n.w.hist.number(ownerOf(value)), weight: 1, left: left}}
	}
	return recordHolds(n, lock, value, left)
}

// heldBy returns the lease of an owner there.
func heldBy(n *node, lock, owner int) (held, bool) {
	for _, h := range heldAt(n, lock) {
		if h.owner == owner {
			return h, true
		}
	}
	return held{}, false
}
