package sim

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/store"
)

// grants judges a new lease. If two leases overlap, the later one begins while the holder
// of the earlier one still trusts it. So this is the moment to compare them.
func (j *judge) grants(c *claim) {
	c.at = j.w.now()
	c.owner = j.w.hist.number(c.lease.Owner())
	j.claims = append(j.claims, c)
	j.kept = append(j.kept, c)
	o := j.w.owner(c.owner)
	if o.holder != nil { // passed on
		j.tally.Passed++
	}
	if o.holder == nil || o.holder.lease.Token() < c.lease.Token() { // of two at the same instant
		o.holder = c
	}
	if o.least = 0; c.minHold > 0 && c.k.c.goneOn < c.at {
		o.least = c.at + c.minHold
	}
	j.locks[c.lock].leastUntil = max(j.locks[c.lock].leastUntil, c.at+c.minHold)
	j.tally.Grants++
	j.locks[c.lock].grants++
	if c.ended() || c.lease.Err() != nil {
		return // over before anybody could act on it
	}
	j.draws(c)
	j.compare(c)
}

// draws judges the token of a new lease: it is larger than all before it in its slot. That of
// a reader may be that of the readers before it, and over several servers smaller, but it is
// larger than that of every writer.
func (j *judge) draws(c *claim) {
	r := &j.locks[c.lock]
	t, last := uint64(c.lease.Token()), r.tokens[c.slot()]
	if c.shares() && r.readers {
		if len(j.w.nodes) > 1 {
			last = min(last, r.writer+1)
		}
		last-- // the same is enough
	}
	if t <= last {
		j.wrong(Token, "%s after token %d", j.name(c), last)
		return
	}
	r.tokens[c.slot()], r.readers = max(t, r.tokens[c.slot()]), c.shares()
	if !r.readers {
		r.writer = t
	}
}

// kind is the kind of the lock.
func (c *claim) kind() store.Kind { return c.k.w.script.kind(c.lock) }

// shares says whether it shares its token with others: that of a reader.
func (c *claim) shares() bool {
	return store.Lease{Kind: c.kind(), Weight: c.weight}.SharesToken()
}

// slot is what its token is compared within.
func (c *claim) slot() int {
	if c.kind().Shared {
		return 0
	}
	return c.lease.Slot()
}

// excludes says whether two leases of a lock cannot be valid at once, whatever others are.
func (c *claim) excludes(o *claim) bool {
	return c.kind().Shared && !(c.shares() && o.shares()) || !c.kind().Shared && c.slot() == o.slot()
}

// compare looks for another valid holder beside c, which is valid now.
func (j *judge) compare(c *claim) {
	rule := Exclusion
	if !c.kind().Shared && !c.kind().IsMutex() {
		rule = Slots
	}
	weight := c.weight
	for _, o := range j.claims {
		if o == c || o.lock != c.lock || o.over || !o.k.c.running() || o.ended() {
			continue
		}
		valid := o.lease.Err() == nil
		if valid {
			weight += o.weight
		}
		switch {
		case !c.excludes(o):
		case valid:
			j.wrong(rule, "%s and %s", j.name(o), j.name(c))
		case !j.drowsy(o):
			j.wrong(ToldLate, "%s still trusts its context while %s has the lock", j.name(o), j.name(c))
		}
	}
	if rule == Slots && weight > c.kind().Limit {
		j.wrong(Permits, "%d of lock %d, which has %d: %s is one too many", weight, c.lock+1, c.kind().Limit, j.name(c))
	}
}

// drowsy says whether a lease's holder may not have been notified yet, because its machine
// has just woken up: timers stood still, and the client reads its clock four times a second.
// Err is right at once, the context a little later.
func (j *judge) drowsy(c *claim) bool { return j.w.now() < c.k.c.wokeAt+260*time.Millisecond }

// goesOn judges the leases of a client that was paused: none of them is valid if another
// client's lease of the same lock is.
func (j *judge) goesOn(cl *client) {
	for _, c := range j.claims {
		if c.k.c == cl {
			continue
		}
		for _, o := range j.claims {
			if o.k.c == cl && o.lock == c.lock && c.k.c.running() && !c.over && !c.ended() && c.lease.Err() == nil {
				j.compare(c)
				break
			}
		}
	}
}

// pauses notes that a client is paused. Its timers then fire earlier than its
// clock says, so that its least holds cannot be judged.
func (j *judge) pauses(cl *client) {
	for _, c := range j.claims {
		if c.k.c == cl {
			j.w.owner(c.owner).least = 0
		}
	}
}

// died forgets the leases of a dead process.
func (j *judge) died(cl *client) {
	for _, c := range j.claims {
		c.over = c.over || c.k.c == cl
	}
}

// ends judges the end of a lease: nobody else can have the lock yet, nor during the notice
// that the holder was promised.
func (j *judge) ends(c *claim) {
	c.over = true
	err := c.lease.Err()
	j.w.hist.ends(c, err)
	if context.Cause(c.lease.Context()) == nil {
		j.wrong(ToldLate, "%s is over, its context is not", j.name(c))
	}
	var lost *leasehold.LostError
	if !errors.As(err, &lost) {
		return
	}
	j.tally.Losses++
	j.w.owner(c.owner).least = 0
	if c.last {
		j.wrong(Waiting, "%s was lost though nothing was wrong: %v", j.name(c), lost.Reason)
	}
	if j.w.script.Roll { // a majority of what, depends on whom you ask
		return
	}
	if asleep := j.drowsy(c) || j.w.now() < c.k.c.goneOn+time.Millisecond; asleep || c.giving {
		return
	}
	if on := j.on(c); lost.Cause == leasehold.LostDenied && on >= moreThanHalf(len(j.w.nodes)) {
		j.wrong(Answers, "%s was said to be gone, and is on %d nodes", j.name(c), on)
	}
	j.tally.Notified++
	if j.jumped(c) {
		return
	}
	if free := j.freeIn(c); free < c.notice {
		j.wrong(ToldLate, "%s was told %v before others can have a majority, not %v", j.name(c), free, c.notice)
	}
}

// jumped says whether the clock of a node was set right while c was held. The node may have
// dropped the lease then, and others do not count what it grants.
func (j *judge) jumped(c *claim) bool {
	return slices.ContainsFunc(j.w.nodes, func(n *node) bool { return n.setRight > c.at })
}

// freeIn is when others can have a majority of nodes, if c is not renewed.
func (j *judge) freeIn(c *claim) time.Duration {
	var in []time.Duration
	for _, n := range j.w.nodes {
		d := max(n.shut(), n.discounted-j.w.now())
		if h, ok := n.heldBy(c.lock, c.owner); ok {
			d = max(d, n.trueLength(h.left))
		}
		in = append(in, d)
	}
	slices.Sort(in)
	return in[moreThanHalf(len(in))-1]
}

// on is how many nodes have c.
func (j *judge) on(c *claim) (nodes int) {
	for _, n := range j.w.nodes {
		if _, ok := n.heldBy(c.lock, c.owner); ok {
			nodes++
		}
	}
	return nodes
}

// moreThanHalf is the judge's own idea of a majority.
func moreThanHalf(nodes int) int { return nodes/2 + 1 }

// writes has the resource judge a holder that believes in its lease.
func (j *judge) writes(c *claim) {
	j.tally.Writes++
	r := &j.locks[c.lock]
	if c.shares() && len(j.w.nodes) > 1 {
		return // the resource checks the tokens of writers only
	}
	if t, last := uint64(c.lease.Token()), r.written[c.slot()]; t < last {
		j.wrong(Stale, "%s writes after token %d", j.name(c), last)
	} else {
		r.written[c.slot()] = t
	}
}

// releases judges the outcome of a release that its holder was given.
func (j *judge) releases(c *claim, err error) {
	still := j.on(c)
	passed := j.w.owner(c.owner).holder != c
	if passed || j.w.script.Roll || j.w.owner(c.owner).revived {
		still = 0 // how many are too many depends on the list; or it came back by a Replay
	}
	if err != nil {
		if errors.Is(err, leasehold.ErrLost) && c.lease.Err() == leasehold.ErrReleased && still >= moreThanHalf(len(j.w.nodes)) {
			j.wrong(Answers, "%s was said to be given up before its release, and is on %d nodes", j.name(c), still)
		}
		if c.last && !errors.Is(err, leasehold.ErrLost) {
			j.wrong(Answers, "%s could not be released though nothing was wrong: %s", j.name(c), class(err))
		}
		if c.minHold > 0 && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			j.w.owner(c.owner).left = true // the least hold was cut off: the lock ends by its TTL, as documented
		}
		return
	}
	j.tally.Releases++
	if still > len(j.w.nodes)-moreThanHalf(len(j.w.nodes)) {
		j.wrong(Answers, "%s was released, and is still on %d nodes", j.name(c), still)
	}
}
