package driver

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// waiting are the attempts that stand in line, by owner, so that what nodes say
// unasked finds them.
type waiting struct {
	last      atomic.Uint64
	unclaimed atomic.Int64 // that nobody waits for yet; see Return
	mu        sync.Mutex
	byOwner   map[string]*attempt
	departed  departed
}

// queued is what an attempt that waits knows besides.
type queued struct {
	waits     bool
	unclaimed bool   // nobody waits for what becomes of it yet; see Return
	number    uint64 // in the order they came
	reason    func(error)
	again     bool          // its place was refreshed
	armed     clock.Instant // when the timer fires; 0: it was not set
	freed     clock.Instant // when it was first told that the lock is free; 0: never
	nodes     [quorum.MaxNodes]standing
	told      told
}

// standing is what a node said of our place.
type standing struct {
	answered bool
	position int
	behind   bool // only wanted behind somebody else; see Return
	none     bool // and there is none, for want of that
	missed   bool // what it said since, perhaps, while nobody waited
}

// told is what was last said to whoever waits.
type told struct {
	holder   string
	position int
	trouble  bool
	said     bool
}

const (
	// pollEvery is the longest pause between two looks at a lock whose release
	// nobody would tell us of.
	pollEvery = time.Second
	// strangerEvery is that pause for the first in line behind a client of another kind,
	// which releases without telling anybody. Those clients look as often themselves.
	strangerEvery = 100 * time.Millisecond
	// polledAtOnce is how many attempts may do so at full pace; more of them take
	// their time.
	polledAtOnce = 64
	// troubled is the pause before a node that could not be asked is asked again.
	troubled = 100 * time.Millisecond
	// Those in line come for a lock whose holder does not renew it any more, one
	// heirPause after the other. All of them do: any number from the head of the line on
	// may have died with the holder. Where the holder asked for no shorter a TTL than
	// those who wait, that costs nothing: a refresh comes before it, with a new end. Where
	// it did, each comes as often as its lease could have ended, but for the more rarely
	// the farther back it stands: a crowd asks little more often than its first few.
	heirPause = 20 * time.Millisecond
	// bargeFor is how long somebody at the head of the line, who wanted it so, may
	// come too late for a lock that is free. Then it is handed it like others, or a
	// process that takes the lock again and again would shut it out.
	bargeFor = 20 * time.Millisecond
	// expired is how long after its end a lease is certainly gone.
	expired = time.Millisecond
)

// Wait stands in line; see store.Waiter. The request has been checked.
func (k *Keeper) Wait(ctx context.Context, r store.Request, reason func(error)) (store.Grant, error) {
	a := k.claim(r.Owner, reason)
	if a == nil {
		a = k.come(r, false, reason)
	}
	for first := a.start; ; a = k.come(r, true, reason) {
		after := a.start.Sub(first)
		g, gaveWay, err := k.stand(ctx, a)
		if !gaveWay {
			g.Since += after
			return g, err
		}
		r.Owner = store.SameRank(r.Owner)
	}
}

// come begins an attempt that stands in line. again: it follows one that gave way.
func (k *Keeper) come(r store.Request, again bool, reason func(error)) *attempt {
	start := k.Clock.Now()
	a := k.begin(r, start)
	a.mu.Lock()
	a.core.BeginWait(k.config(r), r.TTL, start, again)
	a.queue = queued{waits: true, number: k.waiting.last.Add(1), reason: reason}
	a.mu.Unlock()
	k.enter(a)
	a.ask(Question{Op: quorum.Acquire, Lease: r, Waits: true, Stand: again, Stamp: start})
	a.mu.Lock()
	a.inform(a.news()) // nodes that could not be asked have answered
	a.mu.Unlock()
	return a
}

// stand waits for as long as nobody has to be given way to.
func (k *Keeper) stand(ctx context.Context, a *attempt) (g store.Grant, gaveWay bool, err error) {
	await(ctx, k.Closing, k.Clock, a.start, a.over, a.timer, a, func() { k.listen(ctx, a.over, a.left) })
	a.mu.Lock()
	defer a.leave()
	k.depart(a)
	switch {
	case a.core.Verdict() == quorum.Won:
		return a.grant(), false, nil
	case ctx.Err() != nil:
		return g, false, ctx.Err()
	case k.closing():
		return g, false, store.ErrClosed
	case a.core.GaveWay():
		return g, true, nil
	}
	return g, false, a.failure(ctx)
}

// left is how long an attempt that waits has nothing to do by itself.
func (a *attempt) left() time.Duration {
	if a.k.closing() {
		return 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	at, ok := a.core.Next() // the timer may fire earlier, for what has been answered since
	if !ok {
		return 0
	}
	return at.Sub(a.k.Clock.Now())
}

func (k *Keeper) closing() bool {
	select {
	case <-k.Closing:
		return true
	default:
		return false
	}
}

func (k *Keeper) enter(a *attempt) {
	w := &k.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byOwner == nil {
		w.byOwner = map[string]*attempt{}
	}
	w.byOwner[a.r.Owner] = a
}

// load is how many wait.
func (k *Keeper) load() int {
	w := &k.waiting
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byOwner)
}

// Handed takes in what a node says unasked: that it has granted the lock to
// owner. It does not block. It returns which lock that is, and nothing
// if the owner neither waits for it nor has it.
func (k *Keeper) Handed(node int, owner string, ans Answer) (name string) {
	waits := k.tell(owner, func(a *attempt) {
		at := k.at(ans)
		if ans.From < a.start || ans.From > at {
			return // no request of this attempt left then
		}
		name = a.r.Name
		e := quorum.Event{Kind: quorum.Handed, Node: node, Op: quorum.Acquire, Token: ans.Token, Reserved: a.reserved(ans), From: ans.From}
		said := store.NodeOutcome{Outcome: store.Granted}
		if err := k.trusts(node, ans, ans.From, at); err != nil {
			e.Kind = quorum.Shun
			said = err.said()
		}
		a.note(node, said)
		a.apply(e, at)
	})
	if !waits {
		name = k.decline(node, owner)
	}
	return name
}

// Freed takes in what a node says unasked: that the lock is free, for whoever
// barges to come and try.
func (k *Keeper) Freed(node int, owner string) {
	waits := k.tell(owner, func(a *attempt) {
		now := k.Clock.Now()
		if a.queue.freed == 0 {
			a.queue.freed = now
		}
		a.apply(quorum.Event{Kind: quorum.Freed, Node: node}, now)
	})
	if !waits {
		k.decline(node, owner)
	}
}

// barges says whether the attempt still only wants to be told. The mutex is held.
func (a *attempt) barges(now clock.Instant) bool {
	return a.r.Barge && (a.queue.freed == 0 || now.Sub(a.queue.freed) < bargeFor)
}

// Poll has everybody who waits ask the node again: what it said unasked may have
// been missed.
func (k *Keeper) Poll(node int) {
	w := &k.waiting
	w.mu.Lock()
	owners := make([]string, 0, len(w.byOwner))
	for owner := range w.byOwner {
		owners = append(owners, owner)
	}
	slices.SortFunc(owners, func(x, y string) int { return cmp.Compare(w.byOwner[x].queue.number, w.byOwner[y].queue.number) })
	w.mu.Unlock()
	for _, owner := range owners {
		k.tell(owner, func(a *attempt) {
			if a.queue.unclaimed { // nobody would wait for the answer
				a.queue.nodes[node].missed = true
				return
			}
			a.apply(quorum.Event{Kind: quorum.Poll, Node: node}, k.Clock.Now())
		})
	}
}

// tell does something with the attempt of owner, if it is still open. It says whether
// there is an attempt: one that is not open any more sees to what it leaves itself.
func (k *Keeper) tell(owner string, do func(*attempt)) (found bool) {
	w := &k.waiting
	w.mu.Lock()
	a := w.byOwner[owner]
	w.mu.Unlock()
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	// Its memory may serve another attempt by now.
	if a.users > 0 && a.queue.waits && a.r.Owner == owner && a.core.Verdict() == quorum.Open {
		do(a)
	}
	return true
}

// arm sets the timer earlier if the machine wants it. Who has waited for long may do so
// for longer, and has it set later as well: many who wait would be woken up for nothing.
// The mutex is held.
func (a *attempt) arm(now clock.Instant) {
	if at, ok := a.core.Next(); ok && (a.queue.armed == 0 || at < a.queue.armed || at > a.queue.armed && a.queue.again) {
		a.queue.armed = at
		a.timer.Reset(max(at.Sub(now), 0))
	}
}

// inLine completes the event that an answer is, for an attempt that waits. The
// mutex is held.
func (a *attempt) inLine(e quorum.Event, ans Answer) quorum.Event {
	if !a.queue.waits {
		return e
	}
	s := &a.queue.nodes[e.Node]
	s.answered = true
	if e.Op == quorum.Acquire {
		s.position = ans.Position
	}
	if ans.Said.Outcome == store.Taken {
		e.Holder, e.Lasts = ans.Said.Holder.Owner, ans.Said.ExpiresIn
		if e.Senior = store.Before(e.Holder, a.r.Owner); e.Senior && len(a.k.Nodes) > 1 {
			e.Came = a.k.seen.since(e.Holder, a.k.at(ans))
		}
	}
	e.Pause = a.pause(ans)
	return a.returned(e, ans)
}

// pause is how long to wait before the node is asked again, if nothing is heard.
// The machine sees to it that it is never longer than a place may go without
// being refreshed.
func (a *attempt) pause(ans Answer) time.Duration {
	d := a.r.TTL
	switch said := ans.Said; said.Outcome {
	case store.Taken:
		if said.ExpiresIn > 0 {
			d = min(d, said.ExpiresIn+expired+time.Duration(max(0, ans.Position-1))*heirPause)
		}
		switch {
		case said.Holder.Foreign && ans.Position <= 1:
			d = min(d, a.poll(strangerEvery))
		case said.Holder.Foreign || ans.Deaf:
			d = min(d, a.poll(pollEvery))
		}
	case store.Quarantined:
		d = min(d, said.ExpiresIn+expired, pollEvery)
	case store.Granted, store.Absent:
	default:
		d = a.k.jitter(troubled)
	}
	return max(d, expired)
}

// poll is the pause between two looks at a lock whose release nobody would tell us of,
// and more than that where many attempts look.
func (a *attempt) poll(every time.Duration) time.Duration {
	return a.k.jitter(every * time.Duration(1+a.k.load()/polledAtOnce))
}

func (k *Keeper) jitter(d time.Duration) time.Duration {
	if k.Jitter != nil {
		return k.Jitter(d)
	}
	return d/2 + rand.N(d/2+1)
}

// senior is whoever comes first of those before us who have a part of the nodes.
// The mutex is held.
func (a *attempt) senior() (owner string) {
	for _, said := range a.said {
		if o := said.Holder.Owner; said.Outcome == store.Taken && store.Before(o, a.r.Owner) && (owner == "" || store.Before(o, owner)) {
			owner = o
		}
	}
	return owner
}

// news is why the lock was not granted yet, if there is anything to tell that was not
// told before. What waiting can not mend ends the attempt. The mutex is held.
func (a *attempt) news() (why error) {
	q := &a.queue
	if !q.waits || a.core.Verdict() != quorum.Open {
		return nil
	}
	now, position := told{said: true}, 0
	for i := range a.k.Nodes {
		if !q.nodes[i].answered {
			return nil
		}
		position = max(position, q.nodes[i].position)
	}
	if len(a.said) == 0 {
		return nil
	}
	nodes := a.k.evidence(a.said, &a.core)
	need := quorum.Majority(len(nodes))
	if busy := BusyError(a.r.Name, nodes, need); busy != nil {
		busy.Position = position
		now.holder, now.position = busy.Holder.Owner, position
		why = busy
	} else {
		trouble := &store.QuorumError{Op: "acquire", Name: a.r.Name, Need: need, Nodes: nodes}
		if trouble.Count(store.WrongType)+trouble.Count(store.Refused) > 0 && !trouble.Transient() {
			a.apply(quorum.Event{Kind: quorum.Cancel}, a.k.Clock.Now())
			return nil
		}
		now.trouble = true
		why = trouble
	}
	if q.reason == nil || now == q.told && !now.trouble {
		return nil
	}
	q.told = now
	return why
}

// inform tells what news has found. Several nodes answer at once, and the last thing
// told has to be the latest: what is no news any more when its turn comes is left out.
// The mutex is held, but not while telling.
func (a *attempt) inform(why error) {
	if why == nil {
		return
	}
	is := a.queue.told
	a.mu.Unlock()
	a.telling.Lock()
	a.mu.Lock()
	tell := a.queue.reason
	latest := is == a.queue.told && a.core.Verdict() == quorum.Open
	a.mu.Unlock()
	if latest {
		tell(why)
	}
	a.telling.Unlock()
	a.mu.Lock()
}
