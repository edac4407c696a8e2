package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// judge watches a run for broken promises. It looks after every event, when
// nothing runs, and disturbs nothing: it asks a lease whether it is valid only
// where its holder was to be told already.
type judge struct {
	w      *world
	claims []*claim // not known to be over
	locks  []lockRecord
	goneOn []*client // after a pause, not looked at since
	wrongs []Violation
	tally  Tally
}

// claim is one lease, as its holder sees it.
type claim struct {
	k            *worker
	lock         int
	owner        int
	lease        *leasehold.Lease
	ttl, notice  time.Duration
	minHold      time.Duration
	maxHold      time.Duration
	at           time.Duration
	last         bool // of the rounds after all faults
	giving, over bool // the holder has begun to release; it has ended
}

// lockRecord is what has been seen of one lock.
type lockRecord struct {
	token   uint64 // of the last grant
	written uint64 // largest token the resource has seen
}

// Violation is a promise that was broken.
type Violation struct {
	At   time.Duration
	Rule string // which promise
	Text string // by what
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Rule, v.Text) }

// The promises.
const (
	Exclusion = "two valid leases at once"
	ToldLate  = "a holder's context did not end before others could have the lock"
	Token     = "a fencing token did not increase"
	Stale     = "a holder that believed in its lease was refused for its token"
	Orphan    = "something was left behind"
	Waiting   = "a waiter did not get the lock"
	Answers   = "a wrong answer"
)

type noteKind uint8

const (
	granted noteKind = iota
	refused
	wrote
	extended
	releasing
	released
	wrong
)

// note is what a worker has to say.
type note struct {
	kind  noteKind
	claim *claim
	err   error
	text  string
}

func (j *judge) init(w *world) {
	j.w = w
	j.locks = make([]lockRecord, w.script.Locks)
}

func (j *judge) failed() bool { return len(j.wrongs) > 0 }

func (j *judge) wrong(rule, format string, args ...any) {
	if j.w.gaveUp {
		return // one is enough, and the end of such a run is no clean one
	}
	v := Violation{At: j.w.now(), Rule: rule, Text: fmt.Sprintf(format, args...)}
	j.wrongs = append(j.wrongs, v)
	j.w.hist.say("VIOLATION: %s: %s", rule, v.Text)
}

// look takes in what workers have noted, and sees which leases have ended.
// What a paused process does is seen when it goes on.
func (j *judge) look() {
	for _, c := range j.w.clients {
		if c.paused() {
			continue
		}
		for _, k := range c.workers {
			j.w.mu.Lock()
			notes := k.notes
			k.notes = nil
			j.w.mu.Unlock()
			for _, n := range notes {
				j.hear(k, n)
			}
		}
	}
	for _, c := range j.goneOn {
		j.goesOn(c)
	}
	j.goneOn = j.goneOn[:0]
	for _, c := range j.claims {
		if c.k.c.running() && !c.over && c.ended() {
			j.ends(c)
		}
	}
	j.claims = slices.DeleteFunc(j.claims, func(c *claim) bool { return c.over })
}

// ended says whether the holder has been told that the lease is over.
func (c *claim) ended() bool {
	select {
	case <-c.lease.Done():
		return true
	default:
		return false
	}
}

func (j *judge) hear(k *worker, n note) {
	j.w.hist.note(k, n)
	if k.c.dead {
		return
	}
	switch n.kind {
	case granted:
		j.grants(n.claim)
	case refused:
		j.tally.Refusals++
		j.refuses(k, n)
	case wrote:
		j.writes(n.claim)
	case extended:
		j.tally.Extensions++
	case releasing:
		n.claim.giving = true
	case released:
		j.releases(n.claim, n.err)
	case wrong:
		j.wrong(Answers, "%s, lease %s", n.text, j.name(n.claim))
	}
}

func (j *judge) name(c *claim) string {
	return fmt.Sprintf("o%d (c%d.w%d, lock %d, token %d)", c.owner, c.k.c.index+1, c.k.index, c.lock+1, c.lease.Token())
}

// grants judges a new lease. Of two that overlap the later one begins while
// the earlier one is still believed in, so this is when to look.
func (j *judge) grants(c *claim) {
	c.at = j.w.now()
	c.owner = j.w.hist.number(c.lease.Owner())
	j.claims = append(j.claims, c)
	if o := &j.w.owners[c.owner]; c.minHold > 0 && c.k.c.goneOn < o.born {
		o.least = o.born + c.minHold
	}
	j.tally.Grants++
	if c.ended() || c.lease.Err() != nil {
		return // over before anybody could act on it
	}
	r := &j.locks[c.lock]
	if t := uint64(c.lease.Token()); t <= r.token {
		j.wrong(Token, "%s after token %d", j.name(c), r.token)
	} else {
		r.token = t
	}
	j.compare(c)
}

// compare looks for another holder beside c, which is valid now.
func (j *judge) compare(c *claim) {
	for _, o := range j.claims {
		if o == c || o.lock != c.lock || o.over || !o.k.c.running() || o.ended() {
			continue
		}
		if o.lease.Err() == nil {
			j.wrong(Exclusion, "%s and %s", j.name(o), j.name(c))
		} else if !j.drowsy(o) {
			j.wrong(ToldLate, "%s still trusts its context while %s has the lock", j.name(o), j.name(c))
		}
	}
}

// drowsy says whether a lease's holder may not have been told yet, because its
// machine has only just woken up: timers stood still, and the clock is looked
// at four times a second. Err is right at once, the context a little later.
func (j *judge) drowsy(c *claim) bool { return j.w.now() < c.k.c.wokeAt+260*time.Millisecond }

// goesOn judges the leases of a client that was paused: what it believes now,
// where somebody else believes the same.
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
// clock says, so that its least holds can not be judged.
func (j *judge) pauses(cl *client) {
	for _, c := range j.claims {
		if c.k.c == cl {
			j.w.owners[c.owner].least = 0
		}
	}
}

// died forgets what a dead process had.
func (j *judge) died(cl *client) {
	for _, c := range j.claims {
		c.over = c.over || c.k.c == cl
	}
}

// ends judges the end of a lease: nobody else can have the lock yet, and not
// for as long as the holder was promised to be told before.
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
	j.w.owners[c.owner].least = 0
	if c.last {
		j.wrong(Waiting, "%s was lost though nothing was wrong: %v", j.name(c), lost.Reason)
	}
	if asleep := j.drowsy(c) || j.w.now() < c.k.c.goneOn+time.Millisecond; asleep || c.giving {
		return
	}
	if held := j.w.now() - c.at; c.maxHold > 0 && held > c.maxHold {
		j.wrong(Answers, "%s was held for %v, longer than it was to be", j.name(c), held)
	}
	j.tally.Told++
	if free := j.freeIn(c); free < c.notice {
		j.wrong(ToldLate, "%s was told %v before others can have a majority, not %v", j.name(c), free, c.notice)
	}
}

// freeIn is when others can have a majority of nodes, if c is not renewed.
func (j *judge) freeIn(c *claim) time.Duration {
	var in []time.Duration
	for _, n := range j.w.nodes {
		d := max(0, n.outUntil-j.w.now())
		if o, left, held := n.locks[c.lock].Holder(n.clock()); held && o == c.owner {
			d = max(d, n.trueLength(left))
		}
		in = append(in, d)
	}
	slices.Sort(in)
	return in[moreThanHalf(len(in))-1]
}

// moreThanHalf is the judge's own idea of a majority.
func moreThanHalf(nodes int) int { return nodes/2 + 1 }

// writes has the resource judge a holder that believes in its lease.
func (j *judge) writes(c *claim) {
	j.tally.Writes++
	r := &j.locks[c.lock]
	if t := uint64(c.lease.Token()); t < r.written {
		j.wrong(Stale, "%s writes after token %d", j.name(c), r.written)
	} else {
		r.written = t
	}
}

// releases judges what a holder was told of its release.
func (j *judge) releases(c *claim, err error) {
	if err != nil {
		if c.last && !errors.Is(err, leasehold.ErrLost) {
			j.wrong(Answers, "%s could not be released though nothing was wrong: %s", j.name(c), class(err))
		}
		if c.minHold > 0 && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			j.w.owners[c.owner].told = everywhere // the least hold was cut off: the lock ends by its TTL, as documented
		}
		return
	}
	j.tally.Releases++
	still := 0
	for _, n := range j.w.nodes {
		if o, _, held := n.locks[c.lock].Holder(n.clock()); held && o == c.owner && n.outUntil <= j.w.now() {
			still++
		}
	}
	if still > len(j.w.nodes)-moreThanHalf(len(j.w.nodes)) {
		j.wrong(Answers, "%s was released, and is still on %d nodes", j.name(c), still)
	}
}

var everywhere = func() (a [maxNodes]bool) {
	for i := range a {
		a[i] = true
	}
	return a
}()

// refuses judges an attempt that ended without a lease.
func (j *judge) refuses(k *worker, n note) {
	if n.text == "last" {
		j.wrong(Waiting, "c%d.w%d was refused though nothing was wrong: %s", k.c.index+1, k.index, class(n.err))
	}
}

// applied judges one step of one node.
func (j *judge) applied(n *node, k *call, a modelnode.Answer[int]) {
	q := k.q
	done := a.Verdict == modelnode.Done
	switch {
	case q.Op == quorum.Acquire && done:
		j.w.owners[q.owner].asked[n.index] = j.w.owners[q.owner].asked[n.index] || !k.replayed
		if at, ok := n.releasedAt[q.owner]; ok && n.clock().Sub(at) < q.Lease.TTL && !k.replayed {
			j.wrong(Orphan, "node n%d gives the lock to o%d, which it was told to release before", n.index+1, q.owner)
		}
	case q.Op == quorum.Acquire && a.Verdict == modelnode.Buried:
		j.tally.Buried++
	case q.Op == quorum.Confirm && done:
		j.tally.Confirms++
	case q.Op == quorum.Confirm:
		j.w.owners[q.owner].asked[n.index] = false // it is gone there, and its owner hears so
	case q.Op == quorum.Extend && done:
		j.tally.Renewals++
	case q.Op == quorum.Release:
		n.releasedAt[q.owner] = n.clock()
	}
}

// starved says who did not get on.
func (j *judge) starved() {
	for _, c := range j.w.clients {
		for _, k := range c.workers {
			if k.doing != "is done" {
				j.wrong(Waiting, "c%d.w%d %s since %v", c.index+1, k.index, k.doing, k.since)
				return
			}
		}
	}
}

// atTheEnd looks for what was left behind: attempts whose release never left,
// and, of the rounds in which nothing was wrong, any lock at all.
func (j *judge) atTheEnd() {
	for i, o := range j.w.owners {
		for n := range j.w.nodes {
			if o.asked[n] && !o.told[n] && !j.w.clients[o.client].dead {
				j.wrong(Orphan, "o%d (c%d.w%d) had the lock on node n%d and never released it there", i, o.client+1, o.worker, n+1)
				return
			}
		}
	}
	for _, n := range j.w.nodes {
		for i, l := range n.locks {
			if o, left, held := l.Holder(n.clock()); held && j.w.owners[o].born > j.w.calmAt {
				j.wrong(Orphan, "node n%d keeps lock %d for o%d for another %v", n.index+1, i+1, o, left)
				return
			}
		}
	}
}
