package driver

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// waitState is the additional state of an attempt that waits.
type waitState struct {
	waits     bool
	reserved  bool   // no caller waits for it yet; see ReleaseAndRejoin
	number    uint64 // in order of arrival
	reason    func(error)
	refreshed bool          // an acquire was repeated
	freeSince clock.Instant // when a node first pushed that the lock is free; 0: never
	nodes     [quorum.MaxNodes]nodeWait
	lastNews  news
}

// nodeWait is what a node reported of the attempt's place.
type nodeWait struct {
	answered   bool
	position   int
	onlyIfHeld bool // the place is wanted only behind a holder; see ReleaseAndRejoin
	noPlace    bool // the node gave none, since the lock was free
	pushLost   bool // pushes may have been lost before a caller waited
}

// competes reports whether an attempt that barges still competes for the lock instead of
// being handed it.
func (s *waitState) competes(now clock.Instant) bool {
	return s.freeSince == 0 || now.Sub(s.freeSince) < bargeFor
}

// news is what was last reported to the caller's reason function.
type news struct {
	holder   string
	position int
	trouble  bool
	said     bool
}

const (
	// pollEvery is the longest pause between two requests for a lock whose release is
	// not pushed.
	pollEvery = time.Second
	// pollForeignEvery is that pause for the head of the queue behind another kind of
	// client, whose release is not pushed. Such clients poll as often themselves.
	pollForeignEvery = 100 * time.Millisecond
	// polledAtOnce is how many attempts may poll at full pace. With more, each polls
	// more rarely.
	polledAtOnce = 64
	// retryUnreachable is the pause before a node that could not be reached is asked again.
	retryUnreachable = 100 * time.Millisecond
	// heirPause separates the waiters that ask for a lock when its lease should have
	// ended. All of them ask in turn, since any number from the head of the queue on may
	// have died with the holder. If the holder's TTL is no shorter than the waiters', this
	// costs nothing: a refresh comes first and learns the new end. Otherwise each waiter
	// asks as often as the lease could have ended, and later the farther back it is.
	heirPause = 20 * time.Millisecond
	// bargeFor is how long a waiter that barges competes for a free lock. After that the
	// lock is handed to it like to others, or a process that takes the lock again and
	// again would starve it.
	bargeFor = 20 * time.Millisecond
	// afterExpiry is how long after its end a lease has certainly gone.
	afterExpiry = time.Millisecond
)

// Wait waits in the queue; see *store.Store. The request has been checked.
func (k *Driver[P]) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	r.Slots, r.Repeated = nil, false // those of an earlier lease
	wish := ""
	a := k.takeReserved(r.Owner, reason)
	if a == nil {
		a = k.enqueue(r, false, wish, reason)
	}
	for first := a.start; ; a = k.enqueue(r, true, wish, reason) {
		after := a.start.Sub(first)
		g, follow, err := k.awaitVerdict(ctx, a)
		if follow == nil {
			g.Since += after
			return g, err
		}
		r.Owner, wish = follow(r.Owner)
	}
}

// enqueue begins an attempt that waits. again: it follows one that gave way, which may have
// suggested the slots that are the wish.
func (k *Driver[P]) enqueue(r store.WaitRequest, again bool, wish string, reason func(error)) *attempt[P] {
	start := k.Clock.Now()
	a := k.newAttempt(r, start)
	a.core.BeginWait(k.config(r.Lease), r.TTL, start, again)
	a.core.Wish(wish)
	a.waiting = waitState{waits: true, number: k.waiters.last.Add(1), reason: reason}
	k.waiters.add(a)
	a.askUnlock(Question{Op: quorum.Acquire, Lease: r.Lease, Barge: k.Barge, Waits: true, QueueOnly: again, Stamp: start})
	a.mu.Lock()
	a.reportLocked() // calls that could not be put have their outcomes
	a.mu.Unlock()
	return a
}

// awaitVerdict waits until the attempt is won, lost or gives way. If it gave way,
// follow returns the owner of the attempt that follows it, and the slots to wish for.
func (k *Driver[P]) awaitVerdict(ctx context.Context, a *attempt[P]) (g store.Grant, follow func(owner string) (next, slots string), err error) {
	k.waiters.watchSuspend(k.Clock)
	k.readInline(ctx, a.over, func() bool { return !k.closing() })
	await(ctx, k.Closing, a.over, math.MaxInt64, a.step)
	a.mu.Lock()
	defer a.doneLocked()
	a.alarm.at = 0 // set for long: after a suspend it would be late for the next attempt
	k.waiters.removeLocked(a)
	switch {
	case a.core.Verdict() == quorum.Won:
		return a.grantLocked(), nil, nil
	case ctx.Err() != nil:
		return g, nil, ctx.Err()
	case k.closing():
		return g, nil, store.ErrClosed
	case a.core.GaveWay():
		slots, rank := a.core.Suggests(), store.SameRank
		if a.core.HandedOver() {
			waited := k.Clock.Now().Sub(a.start)
			rank = func(owner string) string { return newRank(owner, waited, k.Wall) }
		}
		return g, func(owner string) (string, string) { return rank(owner), slots }, nil
	}
	return g, nil, a.failureLocked(ctx)
}

// newRank returns an owner that comes after all that wait already, for an owner that has
// waited for so long. If the wall clock was set back meanwhile, later waiters of any client
// still count from where it was.
func newRank(owner string, waited time.Duration, wall func() time.Time) string {
	if wall == nil {
		wall = time.Now
	}
	at := wall()
	if old := store.Rank(owner); old > 0 {
		at = time.UnixMicro(max(at.UnixMicro(), int64(old)+waited.Microseconds()))
	}
	return store.NewOwnerAt(at)
}

func (k *Driver[P]) closing() bool {
	select {
	case <-k.Closing:
		return true
	default:
		return false
	}
}

// eventLocked completes the event of a reply for an attempt that waits.
func (a *attempt[P]) eventLocked(e quorum.Event, ans Reply) quorum.Event {
	s := &a.waiting.nodes[e.Node]
	s.answered = true
	if e.Op == quorum.Acquire {
		s.position = ans.Position
	}
	if ans.Report.Outcome == store.Taken {
		e.Holder, e.ExpiresIn = ans.Report.Holder.Owner, ans.Report.ExpiresIn
		if e.Senior = store.Before(e.Holder, a.r.Owner); len(a.k.Nodes) > 1 {
			e.HolderSince = a.k.sightings.since(e.Holder, a.k.receivedAt(ans))
		}
	}
	e.RetryAfter = a.retryAfterLocked(ans)
	return a.waiting.rejoinEvent(e, ans.Report.Outcome, a.r.TTL)
}

// retryAfterLocked is the pause before the node is asked again if it pushes nothing. The
// machine asks earlier if the place has to be refreshed.
func (a *attempt[P]) retryAfterLocked(ans Reply) time.Duration {
	d := a.r.TTL
	switch said := ans.Report; said.Outcome {
	case store.Taken:
		if said.ExpiresIn > 0 {
			d = min(d, said.ExpiresIn+afterExpiry+time.Duration(max(0, ans.Position-1))*heirPause)
		}
		switch {
		case said.Holder.Foreign && ans.Position <= 1:
			d = min(d, pollPause(a.k, pollForeignEvery))
		case said.Holder.Foreign || ans.NoPush:
			d = min(d, pollPause(a.k, pollEvery))
		}
	case store.Quarantined:
		d = min(d, said.ExpiresIn+afterExpiry, pollEvery)
	case store.Granted, store.Absent:
	default:
		d = a.k.jitter(retryUnreachable)
	}
	return max(d, afterExpiry)
}

// pollPause is the pause between two requests for a lock whose release is not pushed. It
// grows with the number of attempts that wait.
func pollPause[P any](k *Driver[P], every time.Duration) time.Duration {
	return k.jitter(every * time.Duration(1+k.waiters.count()/polledAtOnce))
}

func (k *Driver[P]) jitter(d time.Duration) time.Duration {
	if k.Jitter != nil {
		return k.Jitter(d)
	}
	return d/2 + rand.N(d/2+1)
}

// seniorTo is the most senior of the owners before this one that have a node.
func seniorTo(this string, reports []store.NodeOutcome) (owner string) {
	for _, said := range reports {
		if o := said.Holder.Owner; said.Outcome == store.Taken && store.Before(o, this) && (owner == "" || store.Before(o, owner)) {
			owner = o
		}
	}
	return owner
}

// newsLocked is why the lock was not granted yet, if that has changed since it was last
// reported. It cancels the attempt if waiting cannot help.
func (a *attempt[P]) newsLocked() (why error) {
	q := &a.waiting
	if a.core.Verdict() != quorum.Open {
		return nil
	}
	now, position := news{said: true}, 0
	for i := range a.k.Nodes {
		if !q.nodes[i].answered {
			return nil
		}
		position = max(position, q.nodes[i].position)
	}
	if len(a.reports) == 0 {
		return nil
	}
	nodes := describe(a.k.Nodes, a.reports, &a.core)
	need := quorum.Majority(len(nodes))
	if busy := newBusyError(a.r.Name, nodes, need); busy != nil {
		busy.Position = position
		now.holder, now.position = busy.Holder.Owner, position
		why = busy
	} else {
		trouble := &store.QuorumError{Op: "acquire", Name: a.r.Name, Need: need, Nodes: nodes}
		if trouble.Count(store.WrongType)+trouble.Count(store.Refused) > 0 && !trouble.Transient() {
			a.applyLocked(quorum.Event{Kind: quorum.Cancel}, a.k.Clock.Now())
			return nil
		}
		now.trouble = true
		why = trouble
	}
	if q.reason == nil || now == q.lastNews && !now.trouble {
		return nil
	}
	q.lastNews = now
	return why
}

// reportLocked calls the caller's reason function with the result of newsLocked. Several
// nodes may reply at once, and the last report has to be the latest: one that is outdated
// when its turn comes is left out. The mutex is released during the call.
func (a *attempt[P]) reportLocked() {
	why := a.newsLocked()
	if why == nil {
		return
	}
	is := a.waiting.lastNews
	a.mu.Unlock()
	a.reporting.Lock()
	a.mu.Lock()
	tell := a.waiting.reason
	latest := is == a.waiting.lastNews && a.core.Verdict() == quorum.Open
	a.mu.Unlock()
	if latest {
		tell(why)
	}
	a.reporting.Unlock()
	a.mu.Lock()
}
