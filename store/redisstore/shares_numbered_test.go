package redisstore

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// The steps here are those of the differential test of locks that several can hold, on one of
// several servers.

// encoder returns the encoder of the store, for one of several servers if r.several is set.
func (r *shareRun) encoder() script.Encoder {
	e := r.s.Encoder()
	e.Several = r.several
	return e
}

// slotsFrom returns slots for a lease of a semaphore from first on, or none.
func slotsFrom(first int64, l store.Lease) (numbers []int64) {
	if first < 0 || l.Kind.Shared {
		return nil
	}
	for n := range l.Weight {
		numbers = append(numbers, (first+n)%l.Kind.Limit)
	}
	slices.Sort(numbers)
	return numbers
}

// numbered returns the slots of a grant if each permit is numbered.
func (r *shareRun) numbered(k store.Kind, slots string) string {
	if r.several && !k.Shared {
		return slots
	}
	return ""
}

// isOf reports whether a lock is not in use as another kind.
func (r *shareRun) isOf(k store.Kind) bool {
	now := rule.Expire(r.record, r.now)
	return len(now.Holds) == 0 && len(now.Queue) == 0 || now.Spec == rule.Spec(k)
}

// seniorInTheWay names the most senior of the holders in the way of an ask, as one of several
// servers does.
func (r *shareRun) seniorInTheWay(ans rule.Answer, ask rule.Ask) rule.Answer {
	if !r.several || ans.Verdict != rule.Busy || ans.Blocker.Waiting {
		return ans
	}
	room, senior := ask.Spec.Limit, ""
	for _, h := range r.record.Holds {
		room -= h.Weight
	}
	for _, h := range r.record.Holds {
		alone := rule.Record{Spec: ask.Spec, Holds: []rule.Hold{h}}
		a := ask
		a.Owner, a.Wait = "another", 0
		if _, could := rule.Admit(alone, a, r.now); ask.Weight <= room && could.Verdict == rule.Granted {
			continue // it has other slots
		}
		if senior == "" || store.Before(h.Owner, senior) {
			senior = h.Owner
		}
	}
	ans.Blocker.Owner = senior
	return ans
}

// own returns an ask for exactly the slots of a lease, before others.
func own(l store.Lease, propose uint64) rule.Ask {
	return rule.Ask{
		Spec: rule.Spec(l.Kind), Owner: l.Owner, Attempt: l.Attempt, Meta: shareMeta, Weight: l.Weight, TTL: l.TTL,
		Numbered: true, Slots: rule.SlotsOf(l.Slots...), Exact: l.Slots != nil, Floor: fence.Token(propose),
	}
}

// keepsSlots returns the request of an owner that waits for certain slots: it keeps asking for those.
func (r *shareRun) keepsSlots(l store.Lease, exact bool) (store.Lease, bool) {
	for _, p := range rule.Expire(r.record, r.now).Queue {
		if p.Owner == l.Owner && p.Exact && r.several {
			l.Kind, l.Weight, exact = store.Kind(r.record.Spec), p.Weight, true
			l.Slots, _ = p.Slots.Numbers()
		}
	}
	return l, exact
}

func (r *shareRun) confirms(s shareStep, l store.Lease) error {
	token := r.record.Token + fence.Token(s.Raise)
	if s.Wrong {
		token = 1
	}
	if token == 0 || !r.isOf(l.Kind) { // a lease has one kind
		return nil
	}
	next, ans := rule.ConfirmToken(r.record, l.Owner, rule.SlotsOf(l.Slots...), token, r.now)
	r.record = next
	return r.question(driver.Question{Op: quorum.Confirm, Lease: l, Token: uint64(token)}, ans)
}

// makesRoom reports whether a step that comes before others may have made room for them.
func makesRoom(ans rule.Answer) bool {
	return ans.Verdict == rule.Busy || ans.Verdict == rule.Granted && !ans.Again
}

func (r *shareRun) heals(l store.Lease, propose uint64) error {
	if !l.Kind.Shared && l.Slots == nil { // such a lease has its slots
		return nil
	}
	if !r.isOf(l.Kind) {
		return errUndecided // the rest is as for an ask
	}
	next, ans := rule.Admit(r.record, own(l, propose), r.now)
	r.record = next
	ans = r.seniorInTheWay(ans, own(l, propose))
	if makesRoom(ans) {
		r.advance(propose, false)
	}
	return r.question(driver.Question{Op: quorum.Heal, Lease: l}, ans)
}

// renewsNumbered renews a lease, and ends it if it has other slots. If there is no lease, the answer
// says whether it could be acquired.
func (r *shareRun) renewsNumbered(l store.Lease, propose uint64) error {
	if !l.Kind.Shared && l.Slots == nil { // such a lease has its slots
		return nil
	}
	if !r.isOf(l.Kind) { // a lease has one kind
		return nil
	}
	held := slices.IndexFunc(r.record.Holds, func(h rule.Hold) bool { return h.Owner == l.Owner })
	reads := held >= 0 && l.SharesToken() && r.record.Spec.Shared && r.record.Holds[held].Weight > 1
	r.record = rule.DropOthers(r.record, l.Owner, rule.SlotsOf(l.Slots...), r.now)
	next, ans := rule.Renew(r.record, l.Owner, l.TTL, r.now)
	if reads && ans.Verdict == rule.Done {
		next, _ = rule.Downgrade(r.record, l.Owner, l.TTL, fence.Token(propose), r.now)
	}
	r.record = next
	if ans.Verdict == rule.NotHeld && len(next.Holds) > 0 {
		bare := next
		bare.Tombstones = nil
		bare.Holds = slices.Clone(next.Holds)
		for i, h := range bare.Holds {
			if h.Owner == l.Owner {
				bare.Holds[i].Owner += " broken" // then it is in the way like that of another owner
			}
		}
		_, could := rule.Admit(bare, own(l, propose), r.now)
		could = r.seniorInTheWay(could, own(l, propose))
		if could.Verdict == rule.Busy {
			ans = could
		}
	}
	return r.question(driver.Question{Op: quorum.Extend, Lease: l}, ans)
}

// queues makes a place, as if the lock were full, and hands nothing to others.
func (r *shareRun) queues(l store.Lease) error {
	if !r.isOf(l.Kind) {
		return errUndecided // the rest is as for an ask
	}
	q := driver.Question{Op: quorum.Acquire, Lease: l, Waits: true, QueueOnly: true, Stamp: clock.Instant(r.trace.Len()) << 40}
	l, exact := r.keepsSlots(l, false)
	q.Lease, q.Exact = l, exact
	ask := own(l, 1)
	ask.Exact, ask.Fair, ask.Wait = exact, true, l.TTL
	now := rule.Expire(r.record, r.now)
	q.Again = slices.ContainsFunc(now.Queue, func(p rule.Place) bool { return p.Owner == l.Owner })
	barging := ask
	barging.Fair = false
	next, ans := rule.Admit(now, barging, r.now)
	if ans.Verdict == rule.Granted && !ans.Again { // it could be acquired without waiters
		full := now
		full.Spec = ask.Spec
		full.Holds = append(slices.Clone(now.Holds), rule.Hold{Owner: "nobody", Weight: ask.Spec.Limit, Count: 1, Slot: ask.Spec.Limit, Expiry: r.now.Add(l.TTL), Token: 1})
		next, ans = rule.Admit(full, ask, r.now)
		next.Holds = now.Holds
		ans.Verdict = rule.NotHeld // free
	} else {
		next, ans = rule.Admit(now, ask, r.now)
	}
	r.record = next
	if ans.Position > 0 {
		r.noPush[l.Owner], r.stamps[l.Owner] = !r.heard[l.Owner], uint64(q.Stamp)
	}
	return r.question(q, r.seniorInTheWay(ans, ask))
}

// breaksPart breaks the server's part of a lease. If s.Tombstone is set, an inspection has shown it.
func (r *shareRun) breaksPart(s shareStep, l store.Lease, b rule.Break, propose uint64) error {
	part, seen := rule.Part{Made: l.Attempt, Tombstone: s.TTL}, (*script.Held)(nil)
	if s.Tombstone {
		seen = &script.Held{Holding: store.Holding{Token: b.Token}, Made: l.Attempt}
		part.Token = b.Token
	}
	next, ans := rule.BreakPart(r.record, b, part, r.now)
	if r.record = next; ans.Verdict == rule.NotHeld || ans.Verdict == rule.Done && s.Now {
		r.advance(propose, false)
	}
	e := r.encoder()
	c := e.BreakPart(store.BreakRequest{Name: shareLock, Owner: b.Owner, Token: b.Token, Now: s.Now}, seen, l.Attempt, s.TTL)
	v, err := r.do(c)
	if err != nil {
		return err
	}
	want := map[rule.Verdict]script.Breakage{rule.NotHeld: script.NothingHeld, rule.Done: script.LeaseBroken, rule.Mismatch: script.LaterToken}[ans.Verdict]
	if got := script.ReplyTo(v); got.Broke() != want || want == script.LeaseBroken && r.near(got.Changed().Left) != r.near(ans.ExpiresIn) {
		return fmt.Errorf("the script answers %+v\nthe rule         %+v", got, ans)
	}
	return r.look()
}

// advanceTo serves one waiter and then the queue, if that waiter can be served.
func (r *shareRun) advanceTo(to string, propose uint64) {
	now := rule.Expire(r.record, r.now)
	i := slices.IndexFunc(now.Queue, func(p rule.Place) bool { return p.Owner == to })
	if i < 0 {
		return
	}
	only := now
	only.Queue = []rule.Place{now.Queue[i]}
	if _, turns := rule.Advance(only, 1, r.now); len(turns) == 0 {
		return
	}
	now.Queue = slices.Concat([]rule.Place{now.Queue[i]}, now.Queue[:i], now.Queue[i+1:])
	r.record = now
	r.advance(propose, false)
}

// A server that now belongs to another membership does not downgrade a writer, as it renews no lease.
// A server in quarantine does.
func TestDowngradeOfAnotherMembership(t *testing.T) {
	n := onSimulated(t)
	n.s.Membership.Fingerprint = "0123456789ab"
	r := store.Lease{Name: "a", Owner: "deploy", TTL: time.Minute, Kind: store.ReadWrite, Weight: store.ReadWriteLimit, Require: store.CrashSafe}
	n.text(t, "SET", script.MarkKey, openMark)
	if got := n.ask(t, driver.Question{Op: quorum.Acquire, Lease: r})[0]; got.Kind != quorum.Yes {
		t.Fatalf("acquire: %+v, want yes", got)
	}
	down := driver.Question{Op: quorum.Acquire, Lease: r, Downgrade: true}
	n.text(t, "SET", script.MarkKey, markOf(func(m *nodemark.Mark) { m.Print, m.List = "9876543210ab", "b:1" }))
	before := n.text(t, "HGETALL", "{a}:held")
	if got := n.ask(t, down)[0]; got.Kind != quorum.Unsent || n.text(t, "HGETALL", "{a}:held") != before {
		t.Errorf("downgrade on a server of another membership: %+v, want it refused", got)
	}
	n.text(t, "DEL", script.MarkKey)
	if got := n.ask(t, down)[0]; got.Kind != quorum.Yes || n.text(t, "HGETALL", "{a}:held") == before {
		t.Errorf("downgrade on a server in quarantine: %+v, want yes", got)
	}
}
