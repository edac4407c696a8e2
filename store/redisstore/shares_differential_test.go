package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"pgregory.net/rapid"
)

// The scripts of locks that several can hold do what internal/rule does: after every step the
// answers, the pushes and the keys are the same.

func TestSharesOnSimulatedRedis(t *testing.T) { checkShares(t, onSimulated(t)) }

func TestSharesOnRedis(t *testing.T) { checkShares(t, onRedis(t)) }

// The comparison notices every one of these changes in a script.
func TestSharesChanged(t *testing.T) {
	e := listening(t, onSimulated(t))
	examples := slices.Clone(seldomShares)
	for seed := range 250 {
		examples = append(examples, shareSteps.Example(seed))
	}
	find := func() error {
		for _, steps := range examples {
			if err := e.runShares(steps); err != nil {
				return err
			}
		}
		return nil
	}
	noticesAll(t, e.scripted, shareChanges, find)
}

// shareOp is the kind of a step.
type shareOp uint8

const (
	shareAsks shareOp = iota // waits in the queue, or takes the lock
	shareTries
	shareEnds
	shareRenews
	shareDowngrades
	shareResizes
	shareBreaks
	sharePasses
	shareHushes // its channel is subscribed, or unsubscribed
	// Of several servers only.
	shareConfirms
	shareHeals
	shareQueues // wants a place, even if the lock is free
	shareGives  // gives way to another
)

var shareOpNames = [...]string{"asks", "tries", "ends", "renews", "downgrades", "resizes", "breaks", "time passes", "listens or not", "confirms", "heals", "queues", "gives way"}

// shareStep is one step. Kind and To are indexes of shareKinds.
type shareStep struct {
	Op              shareOp
	Owner, Kind, To int
	Heavy           int64 // 0: weight 1; otherwise of the largest weight, or one less
	TTL             time.Duration
	Raise, Attempt  int // Raise: how far a confirm raises the token
	// Wrong breaks another token than that of the lease. Guarded, which is the same in all
	// steps, requires a server that has lost nothing.
	Barge, Tombstone, Renewed, Undo, Now, Wrong, Guarded bool
	// Several, which is the same in all steps, says that the server is one of several. Then
	// Slots is the smallest slot that the owner wants, must have if Exact is set, or has, and -1
	// if it wants none. To is the owner to give way to.
	Several bool
	Slots   int64
	Exact   bool
}

func (s shareStep) String() string {
	type plain shareStep
	return fmt.Sprintf("%d %s: %+v", s.Owner, shareOpNames[s.Op], plain(s))
}

const shareLock, shareMeta = "a {b}:\x00\xff*", `{"pid":1}`

var shareKinds = []store.Kind{store.Semaphore(2), store.Semaphore(3), store.Semaphore(5), store.ReadWrite}

var shareOwners = []string{"ann", "an", "bob", "zoe", "kim", "deploy"}

var shareSteps = rapid.Custom(func(t *rapid.T) []shareStep {
	flag := rapid.SampledFrom([]bool{false, false, true})
	often := slices.Concat(slices.Repeat([]shareOp{shareAsks}, 12), slices.Repeat([]shareOp{shareTries, sharePasses}, 4), slices.Repeat([]shareOp{shareEnds}, 9),
		slices.Repeat([]shareOp{shareRenews, shareDowngrades, shareBreaks, shareHushes}, 2), []shareOp{shareResizes})
	usual := rapid.IntRange(0, len(shareKinds)-1).Draw(t, "kind")
	kinds := rapid.SampledFrom(append(slices.Repeat([]int{usual}, 15), 0, 1, 2, 3))
	guarded, several := flag.Draw(t, "guarded"), flag.Draw(t, "several")
	if several {
		often = slices.DeleteFunc(often, func(op shareOp) bool { return op == shareResizes })
		often = append(often, shareConfirms, shareConfirms, shareHeals, shareHeals, shareQueues, shareQueues, shareGives, shareGives, shareGives)
	}
	one := rapid.Custom(func(t *rapid.T) shareStep {
		s := shareStep{
			Op: rapid.SampledFrom(often).Draw(t, "op"), Owner: rapid.IntRange(0, len(shareOwners)-1).Draw(t, "owner"),
			Kind: kinds.Draw(t, "kind"), To: rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "to"), Heavy: rapid.SampledFrom([]int64{0, 0, 0, 1, 2}).Draw(t, "heavy"),
			TTL:   rapid.SampledFrom([]time.Duration{queueUnit, 2 * queueUnit, 3 * queueUnit, 30 * queueUnit}).Draw(t, "ttl"),
			Raise: rapid.SampledFrom([]int{0, 0, 1, 64}).Draw(t, "raise"), Attempt: rapid.IntRange(1, 2).Draw(t, "attempt"),
			Barge: flag.Draw(t, "barge"), Tombstone: flag.Draw(t, "tombstone"), Renewed: flag.Draw(t, "renewed"), Undo: flag.Draw(t, "undo"),
			Now: flag.Draw(t, "now"), Wrong: flag.Draw(t, "wrong"), Guarded: guarded,
			Several: several,
		}
		if several {
			s.Slots, s.Exact = rapid.SampledFrom([]int64{-1, -1, 0, 0, 1, 2}).Draw(t, "slots"), flag.Draw(t, "exact")
		}
		if s.Op == sharePasses {
			s.TTL = rapid.SampledFrom([]time.Duration{queueUnit, 2 * queueUnit}).Draw(t, "time")
		}
		return s
	})
	return rapid.SliceOfN(one, 1, 40).Draw(t, "steps")
})

func checkShares(t *testing.T, n *scripted) {
	e := listening(t, n)
	for _, steps := range seldomShares {
		if err := e.runShares(steps); err != nil {
			t.Error(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := e.runShares(shareSteps.Draw(t, "all")); err != nil {
			t.Log(err)
			t.Fatal("the scripts and the rule differ: see below")
		}
	})
}

// seldomShares has lists of steps that chance draws too seldom.
var seldomShares = [][]shareStep{{
	// The place of a waiter whose process is gone is skipped.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit},
	{Op: shareHushes, Owner: 2},
	{Op: shareEnds, Owner: 0, TTL: queueUnit},
	{Op: shareTries, Owner: 1, TTL: queueUnit, Heavy: 1},
}, {
	// The lock was handed to one attempt, and another one of the same owner is released.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 5, TTL: 30 * queueUnit, Attempt: 1},
	{Op: shareEnds, Owner: 0, TTL: queueUnit},
	{Op: shareEnds, Owner: 5, TTL: queueUnit, Attempt: 2},
}, {
	// An attempt is undone after another one has joined it.
	{Op: shareAsks, Owner: 5, TTL: 30 * queueUnit, Attempt: 1},
	{Op: shareAsks, Owner: 5, TTL: 30 * queueUnit, Attempt: 2},
	{Op: shareEnds, Owner: 5, TTL: queueUnit, Attempt: 1, Undo: true},
}, {
	// A lease that was broken is not renewed by a downgrade.
	{Op: shareAsks, Owner: 0, Kind: 3, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareBreaks, Owner: 0, Kind: 3},
	{Op: shareDowngrades, Owner: 0, Kind: 3, TTL: 40 * queueUnit},
}, {
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit},
	{Op: shareBreaks, Owner: 0},
	{Op: shareRenews, Owner: 0, TTL: 30 * queueUnit},
	{Op: shareEnds, Owner: 0, TTL: queueUnit, Attempt: 1},
	{Op: shareTries, Owner: 0, TTL: queueUnit},
}, {
	{Op: shareAsks, Owner: 0, TTL: queueUnit},
	{Op: shareRenews, Owner: 0, TTL: 30 * queueUnit},
	{Op: shareBreaks, Owner: 0, Now: true},
	{Op: shareBreaks, Owner: 0},
}, {
	// Readers join a writer that became one.
	{Op: shareAsks, Owner: 3, Kind: 3, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 0, Kind: 3, TTL: 30 * queueUnit},
	{Op: shareDowngrades, Owner: 3, Kind: 3, TTL: 2 * queueUnit},
}, {
	// A release makes room for two.
	{Op: shareAsks, Owner: 3, Kind: 2, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 0, Kind: 2, TTL: 30 * queueUnit},
	{Op: shareAsks, Owner: 1, Kind: 2, TTL: 30 * queueUnit},
	{Op: shareEnds, Owner: 3, TTL: queueUnit},
}, {
	// A waiter that fits does not overtake one that does not.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit},
	{Op: shareAsks, Owner: 1, TTL: 30 * queueUnit},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 3, TTL: 30 * queueUnit},
	{Op: shareEnds, Owner: 0, TTL: queueUnit},
}, {
	// A record that outlasts all holders and waiters has no kind any more.
	{Op: shareAsks, Owner: 0, TTL: 2 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 1, TTL: 30 * queueUnit},
	{Op: shareAsks, Owner: 2, TTL: 2 * queueUnit},
	{Op: shareEnds, Owner: 1, TTL: queueUnit},
	{Op: sharePasses, TTL: 2 * queueUnit},
	{Op: shareTries, Owner: 3, Kind: 3, TTL: queueUnit},
}, {
	// The end of a grant does not shorten another one that lasts for days.
	{Op: shareAsks, Owner: 0, Kind: 1, TTL: 100 * time.Hour},
	{Op: shareAsks, Owner: 1, Kind: 1, TTL: queueUnit},
	{Op: sharePasses, TTL: 2 * queueUnit},
	{Op: shareAsks, Owner: 2, Kind: 1, TTL: 30 * time.Hour},
	{Op: sharePasses, TTL: 20 * time.Hour},
	{Op: shareRenews, Owner: 2, Kind: 1, TTL: 30 * time.Hour}, // so that the counter lasts
	{Op: sharePasses, TTL: 5 * time.Hour},
}, {
	// A place from before a change of the number of permits is removed.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 1, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareResizes, To: 1, TTL: queueUnit},
	{Op: shareAsks, Owner: 2, Kind: 1, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 1, Kind: 1, TTL: queueUnit, Heavy: 1},
}, {
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit},
	{Op: shareBreaks, Owner: 0},
	{Op: shareTries, Owner: 0, TTL: queueUnit},
}, {
	{Op: shareAsks, Owner: 3, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Barge: true},
	{Op: shareEnds, Owner: 3, TTL: queueUnit},
}, {
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit},
	{Op: shareBreaks, Owner: 0, Now: true},
}, {
	// One of several servers names the holder of the slots that an owner must have.
	{Op: shareAsks, Owner: 0, Kind: 1, TTL: 30 * queueUnit, Several: true, Slots: 0},
	{Op: shareAsks, Owner: 1, Kind: 1, TTL: 30 * queueUnit, Several: true, Slots: 1},
	{Op: shareTries, Owner: 2, Kind: 1, TTL: 30 * queueUnit, Several: true, Slots: 0, Exact: true},
}, {
	// An owner that only queues leaves the room that became free to others.
	{Op: shareAsks, Owner: 0, TTL: queueUnit, Heavy: 1, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: sharePasses, TTL: 2 * queueUnit, Several: true},
	{Op: shareQueues, Owner: 3, TTL: 30 * queueUnit, Several: true, Slots: -1},
}, {
	// A renewal with other slots ends the lease. One by a reader makes it a reader's.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Several: true, Slots: 0},
	{Op: shareRenews, Owner: 0, TTL: 30 * queueUnit, Several: true, Slots: 1},
}, {
	{Op: shareAsks, Owner: 3, Kind: 3, TTL: 30 * queueUnit, Heavy: 1, Several: true},
	{Op: shareRenews, Owner: 3, Kind: 3, TTL: 30 * queueUnit, Several: true},
}, {
	// A release gives way to no waiter, and to one that is not the first.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareGives, Owner: 0, TTL: queueUnit, Several: true},
}, {
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 1, TTL: 30 * queueUnit, Heavy: 1, Several: true, Slots: -1},
	{Op: shareGives, Owner: 0, TTL: queueUnit, To: 1, Several: true},
}, {
	// A waiter for slots that are taken is skipped.
	{Op: shareAsks, Owner: 0, Kind: 1, TTL: 30 * queueUnit, Several: true, Slots: 0},
	{Op: shareAsks, Owner: 1, Kind: 1, TTL: 30 * queueUnit, Heavy: 2, Several: true, Slots: 1},
	{Op: shareAsks, Owner: 2, Kind: 1, TTL: 30 * queueUnit, Several: true, Slots: 0, Exact: true},
	{Op: shareAsks, Owner: 3, Kind: 1, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareEnds, Owner: 1, TTL: queueUnit, Several: true},
}, {
	// A part of a lease is broken, another one is left alone, and the lease is not restored on a
	// server without it.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareBreaks, Owner: 0, TTL: queueUnit, Tombstone: true, Wrong: true, Several: true},
	{Op: shareBreaks, Owner: 0, TTL: queueUnit, Tombstone: true, Several: true},
	{Op: shareBreaks, Owner: 1, TTL: 9 * queueUnit, Several: true},
	{Op: shareHeals, Owner: 1, TTL: queueUnit, Several: true, Slots: 1},
}, {
	{Op: shareAsks, Owner: 5, TTL: 30 * queueUnit, Attempt: 1, Several: true, Slots: -1},
	{Op: shareBreaks, Owner: 5, TTL: queueUnit, Attempt: 2, Several: true},
	{Op: shareBreaks, Owner: 5, TTL: 40 * queueUnit, Tombstone: true, Attempt: 2, Several: true},
	{Op: shareBreaks, Owner: 5, TTL: queueUnit, Attempt: 1, Now: true, Several: true},
}, {
	// The owner of a lease on other servers leaves the queue, and makes room for the next.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit, Heavy: 1, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 3, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareBreaks, Owner: 2, TTL: 9 * queueUnit, Several: true},
}, {
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Heavy: 1, Several: true, Slots: -1},
	{Op: shareAsks, Owner: 2, TTL: 30 * queueUnit, Several: true, Slots: -1},
	{Op: shareBreaks, Owner: 0, TTL: queueUnit, Tombstone: true, Now: true, Several: true},
}, {
	// A downgrade renews, a reader's lease is restored although a writer waits, and a token is
	// not confirmed for other slots.
	{Op: shareAsks, Owner: 0, Kind: 3, TTL: 2 * queueUnit, Heavy: 1},
	{Op: shareDowngrades, Owner: 0, Kind: 3, TTL: 30 * queueUnit},
}, {
	{Op: shareAsks, Owner: 0, Kind: 3, TTL: 30 * queueUnit, Several: true},
	{Op: shareAsks, Owner: 2, Kind: 3, TTL: 30 * queueUnit, Heavy: 1, Several: true},
	{Op: shareHeals, Owner: 1, Kind: 3, TTL: 30 * queueUnit, Several: true},
}, {
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Several: true, Slots: 0},
	{Op: shareConfirms, Owner: 0, TTL: 30 * queueUnit, Raise: 64, Several: true, Slots: 1},
}, {
	// A token does not go back, and the only lease leaves a tombstone.
	{Op: shareAsks, Owner: 0, TTL: 30 * queueUnit, Several: true, Slots: 0},
	{Op: shareConfirms, Owner: 0, TTL: 30 * queueUnit, Wrong: true, Several: true, Slots: 0},
	{Op: shareEnds, Owner: 0, TTL: 30 * queueUnit, Tombstone: true, Renewed: true, Several: true},
}}

// errUndecided ends a run in which a request of another owner notifies a waiter that barges:
// the script leaves the room to the waiter, and the rule to the request.
var errUndecided = errors.New("undecided")

// shareRun is one run through a list of steps.
type shareRun struct {
	*ears
	record rule.Record
	now    clock.Instant     // of the rule
	noPush map[string]bool   // owners without a subscriber when they last asked
	stamps map[string]uint64 // of their last request
	pushes []string          // that the rule has sent
	// several says that the server is one of several.
	several bool
	trace   strings.Builder
}

func (e *ears) runShares(steps []shareStep) error {
	begin := clock.Instant(1_790_000_000_123_000_000)
	if err := e.reset(begin); err != nil {
		return err
	}
	r := &shareRun{ears: e, now: begin, noPush: map[string]bool{}, stamps: map[string]uint64{}}
	if err := r.hear(shareOwners[:4]); err != nil {
		return err
	}
	for i, s := range steps {
		fmt.Fprintf(&r.trace, "%3d. %v\n", i+1, s)
		if err := r.step(s); errors.Is(err, errSlow) || errors.Is(err, errUndecided) {
			return nil
		} else if err != nil {
			return fmt.Errorf("owners %q, after\n%s%w", shareOwners, r.trace.String(), err)
		}
	}
	return nil
}

func (r *shareRun) step(s shareStep) error {
	owner := shareOwners[s.Owner]
	switch s.Op {
	case sharePasses:
		r.now = r.now.Add(s.TTL)
		if err := r.Pass(s.TTL); err != nil {
			return err
		}
		return r.look()
	case shareHushes:
		return r.turn(owner)
	}
	at, err := r.Clock()
	if err != nil {
		return err
	}
	propose := uint64(at)/1000 + 500_000
	r.s.Wall = func() time.Time { return time.UnixMicro(int64(propose)).Add(-script.ProposalLead) }
	lease := store.Lease{Name: shareLock, Owner: owner, Meta: shareMeta, TTL: s.TTL, Kind: shareKinds[s.Kind], Weight: 1}
	if s.Heavy > 0 {
		lease.Weight = max(1, lease.Kind.Limit-s.Heavy+1)
	}
	if lease.Kind.Shared && lease.Weight > 1 {
		lease.Weight = lease.Kind.Limit
	}
	if owner == "deploy" {
		lease.Attempt = []string{"", "one", "two"}[s.Attempt]
	}
	if s.Guarded {
		lease.Require = store.CrashSafe
	}
	r.several = s.Several
	if s.Several {
		lease.Slots = slotsFrom(s.Slots, lease)
	}
	switch s.Op {
	case shareConfirms:
		return r.confirms(s, lease)
	case shareHeals:
		return r.heals(lease, propose)
	case shareQueues:
		return r.queues(lease)
	case shareAsks, shareTries:
		return r.asks(s, lease, propose)
	case shareEnds, shareGives:
		return r.ends(s, lease, propose)
	case shareRenews:
		if s.Several {
			return r.renewsNumbered(lease, propose)
		}
		next, ans := rule.Renew(r.record, owner, s.TTL, r.now)
		r.record = next
		return r.question(driver.Question{Op: quorum.Extend, Lease: lease}, ans)
	case shareDowngrades:
		next, ans := rule.Downgrade(r.record, owner, s.TTL, fence.Token(propose), r.now)
		if r.record = next; ans.Verdict == rule.Granted {
			r.advance(propose, false)
		}
		e := r.encoder()
		return r.changes(e.Downgrade(lease), ans, propose)
	case shareResizes:
		return r.resizes(s, lease, propose)
	}
	return r.breaks(s, lease, propose)
}

func (r *shareRun) asks(s shareStep, lease store.Lease, propose uint64) error {
	owner := lease.Owner
	s.Exact = s.Exact && lease.Slots != nil
	lease, s.Exact = r.keepsSlots(lease, s.Exact)
	placed := slices.ContainsFunc(rule.Expire(r.record, r.now).Queue, func(p rule.Place) bool { return p.Owner == owner })
	waits := s.Op == shareAsks || placed // an owner with a place keeps asking for it
	s.Barge = s.Barge && !s.Exact
	q := driver.Question{Op: quorum.Acquire, Lease: lease, Exact: s.Exact, Barge: s.Barge && waits, Waits: waits, Again: placed, Stamp: clock.Instant(r.trace.Len()) << 40}
	ask := rule.Ask{
		Spec: rule.Spec(lease.Kind), Owner: owner, Attempt: lease.Attempt, Meta: shareMeta, Weight: lease.Weight, TTL: s.TTL,
		Fair: !q.Barge, Floor: fence.Token(propose),
		Numbered: s.Several, Slots: rule.SlotsOf(lease.Slots...), Exact: s.Exact,
	}
	if waits {
		ask.Wait = s.TTL
	}
	comesFirst := s.Exact && r.isOf(lease.Kind)
	if !comesFirst && !rule.Expire(r.record, r.now).Idle() && !slices.ContainsFunc(rule.Expire(r.record, r.now).Tombstones, func(t rule.Tombstone) bool { return t.Owner == tombstoneOf(lease) }) {
		if r.advance(propose, false) { // an owner that was released changes nothing
			return errUndecided
		}
	}
	// An owner without a rank that has just lost its place asks anew: otherwise it would be first.
	q.Again = placed && (slices.ContainsFunc(r.record.Queue, func(p rule.Place) bool { return p.Owner == owner }) ||
		slices.ContainsFunc(r.record.Holds, func(h rule.Hold) bool { return h.Owner == owner }))
	next, ans := rule.Admit(r.record, ask, r.now)
	r.record = next
	if ans.Position > 0 && ans.Verdict == rule.Busy {
		r.noPush[owner], r.stamps[owner] = !r.heard[owner], uint64(q.Stamp)
	}
	ans = r.seniorInTheWay(ans, ask)
	if comesFirst && makesRoom(ans) {
		r.advance(propose, false)
	}
	return r.question(q, ans)
}

// tombstoneOf returns the name of the tombstone of a lease.
func tombstoneOf(l store.Lease) string { return strings.TrimSpace(l.Owner + " " + l.Attempt) }

func (r *shareRun) ends(s shareStep, lease store.Lease, propose uint64) error {
	end := rule.End{Owner: lease.Owner, Attempt: lease.Attempt, Undo: s.Undo && lease.Attempt != ""}
	if s.Tombstone {
		end.Tombstone = lease.TTL
	}
	broken := slices.ContainsFunc(r.record.Holds, func(h rule.Hold) bool { return h.Owner == lease.Owner && h.Broken })
	next, ans := rule.Release(r.record, end, r.now)
	if ans.Verdict == rule.Done && s.Renewed && s.Tombstone && !broken {
		next, _ = rule.Release(next, end, r.now) // a tombstone in any case
	}
	r.record = next
	q := driver.Question{Op: quorum.Release, Lease: lease, Tombstone: s.Tombstone, Renewed: s.Renewed, Undo: s.Undo}
	if s.Op != shareGives {
		r.advance(propose, false)
	} else if q.GivesWay = true; s.To > 0 {
		q.To = shareOwners[s.To]
		r.advanceTo(q.To, propose)
	}
	return r.question(q, ans)
}

func (r *shareRun) resizes(s shareStep, lease store.Lease, propose uint64) error {
	if lease.Kind.Shared {
		return nil
	}
	from, to := rule.Spec(lease.Kind), rule.Spec(shareKinds[s.To])
	line := rule.Expire(r.record, r.now).Queue
	next, ans := rule.Resize(r.record, from, to, r.now)
	if r.record = next; ans.Verdict == rule.Done && len(next.Queue) < len(line) {
		for _, p := range line {
			if r.heard[p.Owner] {
				r.pushes = append(r.pushes, "free "+p.Owner)
			}
		}
	}
	e := r.encoder()
	return r.changes(e.Resize(shareLock, lease.Kind, shareKinds[s.To]), ans, propose)
}

func (r *shareRun) breaks(s shareStep, lease store.Lease, propose uint64) error {
	b := rule.Break{Owner: lease.Owner, Now: s.Now, Note: "{}", Keep: store.KeepBroken, Token: 7}
	for _, h := range r.record.Holds {
		if h.Owner == lease.Owner && !s.Wrong {
			b.Token = h.Token
		}
	}
	if s.Several {
		return r.breaksPart(s, lease, b, propose)
	}
	if b.Token == 7 && r.record.Broken != nil && !s.Wrong {
		b.Owner, b.Token = r.record.Broken.Owner, r.record.Broken.Token
	}
	next, ans := rule.BreakLease(r.record, b, r.now)
	if r.record = next; ans.Verdict == rule.Done && s.Now {
		r.advance(propose, s.Guarded)
	}
	e := r.encoder()
	return r.changes(e.BreakHold(store.BreakRequest{Name: shareLock, Owner: b.Owner, Token: b.Token, Now: s.Now}), ans, propose)
}

// advance hands the lock to waiters, as every step does that may have made room. Waiters that no
// push reaches are skipped. unmarked says that the step does not check the mark, so waiters that require such a
// check are only notified.
func (r *shareRun) advance(propose uint64, unmarked bool) (notified bool) {
	before := rule.Expire(r.record, r.now)
	line := before.Queue
	if before.Queue = slices.Clone(line); unmarked {
		for i := range before.Queue {
			before.Queue[i].Barge = true
		}
	}
	for {
		after, turns := rule.Advance(before, fence.Token(propose), r.now)
		gone := slices.IndexFunc(turns, func(t rule.Turn) bool { return !r.heard[t.Owner] && !r.noPush[t.Owner] })
		if gone >= 0 {
			before.Queue = slices.DeleteFunc(slices.Clone(before.Queue), func(p rule.Place) bool { return p.Owner == turns[gone].Owner })
			continue
		}
		r.record = after
		r.record.Queue = slices.DeleteFunc(slices.Clone(line), func(p rule.Place) bool {
			return !slices.ContainsFunc(after.Queue, func(o rule.Place) bool { return o.Owner == p.Owner })
		})
		for _, t := range turns {
			switch i := slices.IndexFunc(after.Holds, func(h rule.Hold) bool { return h.Owner == t.Owner }); {
			case !r.heard[t.Owner]:
			case t.Token == 0:
				r.pushes = append(r.pushes, "free "+t.Owner)
			default:
				r.pushes = append(r.pushes, fmt.Sprintf("handed %s %d slot %d %s stamp %d", t.Owner, t.Token, after.Holds[i].Slot, t.Slots, r.stamps[t.Owner]))
			}
		}
		return slices.ContainsFunc(turns, func(t rule.Turn) bool { return t.Token == 0 })
	}
}

// question makes the script do what the rule has done, and compares its reply with want.
func (r *shareRun) question(q driver.Question, want rule.Answer) error {
	r.s.Channel = script.ChannelBegin + q.Lease.Owner
	e := r.encoder()
	c := e.Encode(q, nil)
	c.Bytes = (&wire{canPush: r.heard[q.Lease.Owner]}).fill(c, c.Bytes)
	v, err := r.do(c)
	if err != nil {
		return err
	}
	got := script.ReplyTo(v).Answer(c.Script)
	if err := r.same(q, got, want); err != nil {
		return fmt.Errorf("the script answers %+v\nthe rule         %+v: %w", got, want, err)
	}
	return r.look()
}

// same compares the answers.
func (r *shareRun) same(q driver.Question, got driver.Reply, want rule.Answer) error {
	kind, mismatch := errors.AsType[*store.KindError](got.Report.Err)
	switch want.Verdict {
	case rule.Granted:
		if got.Kind != quorum.Yes || fence.Token(got.Token) != want.Token || got.Slot != want.Slot || rule.Slots(got.Slots) != want.Slots {
			return fmt.Errorf("want the grant")
		}
	case rule.Done:
		if got.Kind != quorum.Yes || q.Op == quorum.Confirm && fence.Token(got.Token) != want.Token {
			return fmt.Errorf("want yes")
		}
	case rule.NotHeld:
		if got.Kind != quorum.Absent {
			return fmt.Errorf("want that there is no such grant")
		}
	case rule.Buried:
		if !errors.Is(got.Report.Err, script.ErrReleasedOwner) {
			return fmt.Errorf("want that the owner was released")
		}
	case rule.Mismatch:
		if !mismatch || got.Kind != quorum.No || rule.Spec(kind.InUse) != want.Spec || want.Blocker.Owner != "" && kind.Holder.Owner == "" {
			return fmt.Errorf("want a mismatch")
		}
	default:
		h := got.Report.Holder.Owner
		if got.Kind != quorum.No || got.Report.Outcome != store.Taken || r.sim != nil && !want.Blocker.Waiting && h != want.Blocker.Owner || h == "" {
			return fmt.Errorf("want busy")
		}
		if got.Report.Holder.Waiting != want.Blocker.Waiting {
			return fmt.Errorf("want a blocker that waits: %v", want.Blocker.Waiting)
		}
		if !want.Blocker.Waiting && r.near(got.Report.ExpiresIn) != r.near(want.ExpiresIn) {
			return fmt.Errorf("want that it ends in %v", want.ExpiresIn)
		}
		if q.Waits && (got.Position != want.Position || got.NoPush == r.heard[q.Lease.Owner] && want.Position > 0) {
			return fmt.Errorf("want position %d", want.Position)
		}
	}
	return nil
}

// changes is question for the change script.
func (r *shareRun) changes(c *script.Command, want rule.Answer, propose uint64) error {
	v, err := r.do(c)
	if err != nil {
		return err
	}
	got := script.ReplyTo(v).Changed()
	kind, mismatch := errors.AsType[*store.KindError](got.Said.Err)
	ok := false
	switch want.Verdict {
	case rule.Granted:
		ok = got.Said.Outcome == store.Granted && got.Token == want.Token && got.Slot == want.Slot
	case rule.Done:
		ok = got.Said.Outcome == store.Granted && r.near(got.Left) == r.near(want.ExpiresIn)
	case rule.NotHeld:
		ok = got.Said.Outcome == store.Absent
	case rule.Mismatch:
		ok = mismatch && rule.Spec(kind.InUse) == want.Spec && kind.Holder.Owner != ""
	}
	if !ok {
		return fmt.Errorf("the script answers %+v\nthe rule         %+v", got, want)
	}
	return r.look()
}

// do runs one command, and compares the pushes.
func (r *shareRun) do(c *script.Command) (resp.Value, error) {
	all, err := r.scripted.run(script.NewCommand("SET", script.MarkKey, openMark), r.byText(c), script.NewCommand("TIME"), script.NewCommand("DEL", script.MarkKey))
	if err != nil {
		return resp.Value{}, err
	}
	v := all[1].Clone()
	now, err := timeOf(all[2])
	if err != nil {
		return v, err
	}
	if r.slow(now, r.s.Wall().Add(script.ProposalLead)) {
		return v, errSlow
	}
	heard, err := r.messages()
	if err != nil {
		return v, err
	}
	for i, m := range heard {
		if p, ok := script.ParsePush(m); !ok {
			return v, fmt.Errorf("not a push: %q", m)
		} else if p.Granted {
			heard[i] = fmt.Sprintf("handed %s %d slot %d %s stamp %d", p.Owner, p.Token, p.Slot, p.Slots, p.Stamp)
		}
	}
	want := r.pushes
	if r.pushes = nil; !slices.Equal(heard, want) {
		return v, fmt.Errorf("pushed %q, want %q", heard, want)
	}
	return v, nil
}

// look compares the keys of the server with the rule.
func (r *shareRun) look() error {
	all, err := r.scripted.run(script.NewCommand("KEYS", "*"), script.NewCommand("GET", script.KeyBegin+shareLock+script.CounterEnd), inspectByText(r.scripted, shareLock))
	if err != nil {
		return err
	}
	counter, said := string(all[1].Text), script.ReplyTo(all[2].Clone())
	_, _, line := said.Look()
	got, lasts := map[string]string{"counter": counter}, time.Duration(0)
	if record := said.Record(); record != nil {
		for i, h := range record.Holders {
			got[fmt.Sprint("grant ", i)] = fmt.Sprintf("%s, a %v, token %v, weight %d, slot %d %s, ends in %s, broken %v", h.Holder.Owner, record.Kind, h.Token, h.Weight, h.Slot, r.numbered(record.Kind, h.Slots), r.near(h.ExpiresIn), h.Holder.Broken)
		}
	}
	for i, p := range line {
		got[fmt.Sprint("place ", i)] = p.Holder.Owner + " for " + r.near(p.ExpiresIn)
	}
	if b := said.Note(); b != nil {
		got["broken"] = fmt.Sprint(b.Owner, " ", b.Token)
	}
	for _, v := range all[0].Clone().List {
		key := string(v.Text)
		more, err := r.scripted.run(script.NewCommand("PTTL", key))
		if err != nil {
			return err
		}
		if more[0].Num == -1 {
			return fmt.Errorf("%q has no TTL", key)
		}
		if _, owner, ok := strings.Cut(key, script.TombstoneMiddle); ok {
			got["tombstone of "+owner] = r.near(time.Duration(more[0].Num) * time.Millisecond)
		}
		if key == shareLock {
			lasts = time.Duration(more[0].Num) * time.Millisecond
		}
	}
	want, longest := r.wanted()
	if r.sim == nil {
		longest -= queueUnit / 2 // time passes between the two commands
	}
	if lasts < longest { // more is allowed: the place of a waiter that has left
		return fmt.Errorf("the key of the lock lasts for %v, want at least %v", lasts, longest)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("the server has %v\nthe rule      %v", got, want)
	}
	return nil
}

// inspectByText returns the command that inspects a lock, with the text of the script.
func inspectByText(n *scripted, name string) *script.Command {
	return n.byText(n.s.InspectCommand(name))
}

// wanted returns the state of the rule in the form of look, and how long its longest grant or
// place lasts.
func (r *shareRun) wanted() (want map[string]string, longest time.Duration) {
	rec := rule.Expire(r.record, r.now)
	want = map[string]string{"counter": ""}
	if rec.Token > 0 {
		want["counter"] = strconv.FormatUint(uint64(rec.Token), 10)
	}
	for i, h := range rec.Holds {
		left := h.Expiry.Sub(r.now)
		want[fmt.Sprint("grant ", i)] = fmt.Sprintf("%s, a %v, token %v, weight %d, slot %d %s, ends in %s, broken %v", h.Owner, store.Kind(rec.Spec), h.Token, h.Weight, h.Slot, h.Slots, r.near(left), h.Broken)
		longest = max(longest, left)
	}
	for i, p := range rec.Queue {
		left := p.Expiry.Sub(r.now)
		want[fmt.Sprint("place ", i)] = p.Owner + " for " + r.near(left)
		longest = max(longest, left)
	}
	for _, t := range rec.Tombstones {
		want["tombstone of "+t.Owner] = r.near(t.Expiry.Sub(r.now))
	}
	if rec.Broken != nil {
		want["broken"] = fmt.Sprint(rec.Broken.Owner, " ", rec.Broken.Token)
	}
	return want, longest
}
