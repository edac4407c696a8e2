package rule

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

func fenceToken(n int) fence.Token { return fence.Token(n) }

// owners lists the owners in r: holders, waiters and tombstones.
func owners(r Record) string {
	var h, l, t []string
	for _, v := range r.Holds {
		h = append(h, v.Owner)
	}
	for _, v := range r.Queue {
		l = append(l, v.Owner)
	}
	for _, v := range r.Tombstones {
		t = append(t, v.Owner)
	}
	return strings.Join(h, " ") + " | " + strings.Join(l, " ") + " | " + strings.Join(t, " ")
}

// history is a lock under random steps, with what was observed of it.
type history struct {
	now    clock.Instant
	record Record
	// tokens has the tokens of the present leases by owner, and last the largest token that
	// was granted.
	tokens map[string]fence.Token
	last   fence.Token
	// arrived has the places in order of arrival.
	arrived []Place
}

// TestRuleKeepsItsPromises takes random steps at random times and checks the
// properties of a lock after each.
func TestRuleKeepsItsPromises(t *testing.T) {
	specs := []Spec{Mutex, Semaphore(3), {Limit: 3, Shared: true}}
	ttl := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(1, 20).Draw(t, "ttl")) })
	owner := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	rapid.Check(t, func(t *rapid.T) {
		h := &history{now: 1, tokens: make(map[string]fence.Token)}
		// Mostly one kind, so that there is something to contend for.
		usual := rapid.SampledFrom(specs).Draw(t, "spec")
		t.Repeat(map[string]func(*rapid.T){
			"": h.check,
			"pass": func(t *rapid.T) {
				h.now = h.now.Add(time.Duration(rapid.IntRange(1, 8).Draw(t, "time")))
			},
			"admit": func(t *rapid.T) {
				a := Ask{
					Spec:    usual,
					Owner:   owner.Draw(t, "owner"),
					Weight:  rapid.Int64Range(0, usual.Limit).Draw(t, "weight"),
					TTL:     ttl.Draw(t, "ttl"),
					Reenter: rapid.Bool().Draw(t, "reenter"),
					Fair:    rapid.Bool().Draw(t, "fair"),
					Wait:    time.Duration(rapid.IntRange(0, 15).Draw(t, "wait")),
					Floor:   fence.Token(rapid.IntRange(0, 40).Draw(t, "floor")),
				}
				if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
					a.Spec = rapid.SampledFrom(specs).Draw(t, "other spec")
				}
				h.admit(t, a)
			},
			"renew": func(t *rapid.T) {
				h.renew(t, owner.Draw(t, "owner"), ttl.Draw(t, "ttl"))
			},
			"release": func(t *rapid.T) {
				h.release(t, owner.Draw(t, "owner"), time.Duration(rapid.IntRange(0, 15).Draw(t, "tombstone")))
			},
			"leave": func(t *rapid.T) {
				h.leave(t, owner.Draw(t, "owner"))
			},
			"advance": func(t *rapid.T) {
				h.advance(t, fence.Token(rapid.IntRange(0, 40).Draw(t, "floor")))
			},
			"break": func(t *rapid.T) {
				h.breaks(t, owner.Draw(t, "owner"), fence.Token(rapid.IntRange(0, 1).Draw(t, "wrong")), rapid.Bool().Draw(t, "now"))
			},
		})
	})
}

// step takes one step, and requires it not to change its input.
func (h *history) step(t *rapid.T, f func(Record) (Record, Answer)) (before Record, ans Answer) {
	in := h.record
	copied := deepCopy(in)
	out, ans := f(in)
	if !reflect.DeepEqual(in, copied) {
		t.Fatalf("the step changed its input: %+v, was %+v", in, copied)
	}
	// The memory beyond the ends of the input's slices belongs to another record.
	if !sameBeyond(in.Holds, copied.Holds) || !sameBeyond(in.Queue, copied.Queue) || !sameBeyond(in.Tombstones, copied.Tombstones) {
		t.Fatalf("the step wrote beyond its input: %+v", in)
	}
	h.record = out
	return Expire(in, h.now), ans
}

func sameBeyond[E comparable](a, copied []E) bool {
	return slices.Equal(a[:cap(a)], copied[:cap(a)])
}

func (h *history) admit(t *rapid.T, a Ask) {
	before, ans := h.step(t, func(r Record) (Record, Answer) { return Admit(r, a, h.now) })
	weight := max(a.Weight, 1)
	room, ahead := spare(before), before.Queue
	if i := before.place(a.Owner); i >= 0 {
		ahead = before.Queue[:i]
	}
	had := before.hold(a.Owner)
	switch ans.Verdict {
	case Granted:
		if before.buried(a.Owner) || had >= 0 && before.Holds[had].Broken {
			t.Fatalf("a buried owner was admitted")
		}
		now := h.held(t, a.Owner)
		if ans.Token != now.Token || ans.Count != now.Count || ans.ExpiresIn != now.Expiry.Sub(h.now) {
			t.Fatalf("the answer %+v differs from the lease %+v", ans, now)
		}
		if ans.Again != (had >= 0) {
			t.Fatalf("again %v, want %v", ans.Again, had >= 0)
		}
		if now.Expiry < h.now.Add(a.TTL) {
			t.Fatalf("asked for %v, granted for %v, want no less", a.TTL, ans.ExpiresIn)
		}
		if had >= 0 {
			h.confirmed(t, before.Holds[had], now, a)
			return
		}
		if now.Count != 1 || now.Weight != weight {
			t.Fatalf("a new lease is %+v, want count 1 and weight %d", now, weight)
		}
		h.fresh(t, a.Owner, len(before.Holds) > 0, weight, a.Floor, now.Token)
		h.leaves(a.Owner)
		if a.Fair {
			notOvertaken(t, room-weight, ahead)
		}
		if h.record.place(a.Owner) >= 0 {
			t.Fatalf("%s was admitted and still has a place", a.Owner)
		}
	case Busy:
		fits := weight <= room
		if fits && !a.Fair {
			t.Fatalf("a barging ask of weight %d is busy with room of %d", weight, room)
		}
		if fits && len(ahead) == 0 {
			t.Fatalf("an ask of weight %d is busy with room of %d and no waiter ahead", weight, room)
		}
		h.blocker(t, ans, fits, ahead)
		if ans.Position != h.record.place(a.Owner)+1 {
			t.Fatalf("position %d of %s, want that in the queue %+v", ans.Position, a.Owner, h.record.Queue)
		}
		if a.Wait > 0 && ans.Position == 0 {
			t.Fatalf("a waiting ask of %s got no place", a.Owner)
		}
		if i := before.place(a.Owner); i >= 0 && (ans.Position != i+1 || h.record.Queue[i].Expiry < before.Queue[i].Expiry) {
			t.Fatalf("place %d of %+v became worse: %d of %+v", i+1, before.Queue, ans.Position, h.record.Queue)
		}
		if a.Wait > 0 {
			h.placed(t, h.record.Queue[ans.Position-1], a, weight)
		}
		h.untouched(t, before)
	case Buried:
		if !before.buried(a.Owner) && (had < 0 || !before.Holds[had].Broken) {
			t.Fatalf("%s was refused as buried, and has no tombstone", a.Owner)
		}
		h.untouched(t, before)
	case Mismatch:
		if a.Spec == before.Spec && weight <= a.Spec.Limit && (had < 0 || weight <= before.Holds[had].Weight) {
			t.Fatalf("the ask %+v was refused as a mismatch, and fits %+v", a, before)
		}
		h.untouched(t, before)
	default:
		t.Fatalf("an ask got the verdict %v", ans.Verdict)
	}
}

// confirmed: a confirmed lease changes only its expiry and, on re-entry, its
// count.
func (h *history) confirmed(t *rapid.T, was, now Hold, a Ask) {
	if a.Reenter {
		was.Count++
	}
	if now.Expiry < was.Expiry {
		t.Fatalf("asking again shrank %+v to %+v", was, now)
	}
	if was.Expiry = now.Expiry; was != now {
		t.Fatalf("asking again made the lease %+v, want %+v", now, was)
	}
}

// fresh: a new grant has a larger token than all before it. Among others, a shared grant has their token instead.
func (h *history) fresh(t *rapid.T, owner string, others bool, weight int64, floor, token fence.Token) {
	h.tokens[owner] = token
	shared := h.record.Spec.Shared && weight < h.record.Spec.Limit
	switch {
	case shared && others && token != h.last:
		t.Fatalf("a shared grant moved the token from %v to %v", h.last, token)
	case !(shared && others) && (token <= h.last || token < floor):
		t.Fatalf("token %v, want more than %v and the floor %v at least", token, h.last, floor)
	}
	h.last = token
}

// placed: the place is as asked for, and lasts at least as long.
func (h *history) placed(t *rapid.T, p Place, a Ask, weight int64) {
	if p.Expiry < h.now.Add(a.Wait) {
		t.Fatalf("a place lasts for %v, want %v at least", p.Expiry.Sub(h.now), a.Wait)
	}
	if p.Owner != a.Owner || p.Weight != weight || p.Barge == a.Fair {
		t.Fatalf("asked with %+v, the place is %+v", a, p)
	}
	i := slices.IndexFunc(h.arrived, func(q Place) bool { return q.Owner == p.Owner && h.now < q.Expiry })
	if i < 0 {
		h.leaves(p.Owner) // its earlier place has expired
		h.arrived = append(h.arrived, p)
		return
	}
	h.arrived[i] = p
}

// leaves: the owner is no longer in the queue.
func (h *history) leaves(owner string) {
	h.arrived = slices.DeleteFunc(h.arrived, func(p Place) bool { return p.Owner == owner })
}

// alive returns the places of live waiters, in order of arrival.
func (h *history) alive() (queue []Place) {
	for _, p := range h.arrived {
		if h.now < p.Expiry {
			queue = append(queue, p)
		}
	}
	return queue
}

// notOvertaken: a fair grant leaves room for all waiters ahead of it that fitted
// before.
func notOvertaken(t *rapid.T, room int64, ahead []Place) {
	for _, p := range ahead {
		if room -= p.Weight; room < 0 {
			t.Fatalf("%s, ahead in the queue, was overtaken", p.Owner)
		}
	}
}

// blocker: the blocker is a live holder if the lock is full, and otherwise a
// waiter, and none of them expires sooner.
func (h *history) blocker(t *rapid.T, ans Answer, fits bool, ahead []Place) {
	ok := false
	if ans.Blocker.Waiting {
		i := slices.IndexFunc(ahead, func(p Place) bool { return p.Owner == ans.Blocker.Owner })
		ok = fits && i >= 0 && ahead[i].Expiry.Sub(h.now) == ans.ExpiresIn &&
			!slices.ContainsFunc(ahead, func(p Place) bool { return p.Expiry.Sub(h.now) < ans.ExpiresIn })
	} else {
		i := h.record.hold(ans.Blocker.Owner)
		ok = !fits && i >= 0 && h.record.Holds[i].Expiry.Sub(h.now) == ans.ExpiresIn &&
			!slices.ContainsFunc(h.record.Holds, func(o Hold) bool { return o.Expiry.Sub(h.now) < ans.ExpiresIn })
	}
	if !ok || ans.ExpiresIn <= 0 {
		t.Fatalf("the answer %+v names no blocker of %+v that expires first", ans, h.record)
	}
}

// untouched: a refusal changes neither leases nor the token.
func (h *history) untouched(t *rapid.T, before Record) {
	if !reflect.DeepEqual(h.record.Holds, before.Holds) || h.record.Token != before.Token {
		t.Fatalf("a refusal changed %+v to %+v", before, h.record)
	}
}

func (h *history) renew(t *rapid.T, owner string, ttl time.Duration) {
	before, ans := h.step(t, func(r Record) (Record, Answer) { return Renew(r, owner, ttl, h.now) })
	i := before.hold(owner)
	if i < 0 || before.Holds[i].Broken {
		if ans != (Answer{Verdict: NotHeld}) || !reflect.DeepEqual(h.record, before) {
			t.Fatalf("renewal without a lease: %+v, record %+v, want NotHeld and no change", ans, h.record)
		}
		return
	}
	want := deepCopy(before)
	want.Holds[i].Expiry = max(want.Holds[i].Expiry, h.now.Add(ttl))
	if !reflect.DeepEqual(h.record, want) || ans.Verdict != Done || ans.Token != want.Holds[i].Token || ans.ExpiresIn != want.Holds[i].Expiry.Sub(h.now) {
		t.Fatalf("renewal: %+v, record %+v, want %+v", ans, h.record, want)
	}
}

func (h *history) release(t *rapid.T, owner string, tombstone time.Duration) {
	before, ans := h.step(t, func(r Record) (Record, Answer) { return Release(r, End{Owner: owner, Tombstone: tombstone}, h.now) })
	i := before.hold(owner)
	if i < 0 {
		h.untouched(t, before)
		if ans != (Answer{Verdict: NotHeld}) {
			t.Fatalf("release without a lease: %+v, want NotHeld", ans)
		}
		if tombstone > 0 && !Expire(h.record, h.now.Add(tombstone-1)).buried(owner) {
			t.Fatalf("no tombstone of %s for %v: %+v", owner, tombstone, h.record)
		}
		h.leaves(owner)
		return
	}
	was := before.Holds[i]
	if ans.Verdict != Done || ans.Token != was.Token || ans.Count != was.Count-1 {
		t.Fatalf("release of %+v: %+v, want Done with its token and a count of one less", was, ans)
	}
	if inside := h.record.hold(owner) >= 0; inside != (ans.Count > 0) {
		t.Fatalf("released to count %d: the lease exists %v, want %v", ans.Count, inside, ans.Count > 0)
	}
	if was.Broken && ans.Count == 0 {
		if !Expire(h.record, was.Expiry-1).buried(owner) {
			t.Fatalf("late requests of %s are not refused: %+v", owner, h.record)
		}
		before.Tombstones = h.record.Tombstones
	}
	if len(h.record.Holds) < len(before.Holds)-1 || !reflect.DeepEqual(h.record.Queue, before.Queue) || !reflect.DeepEqual(h.record.Tombstones, before.Tombstones) {
		t.Fatalf("the release of %s changed %+v to %+v", owner, before, h.record)
	}
}

func (h *history) leave(t *rapid.T, owner string) {
	before, ans := h.step(t, func(r Record) (Record, Answer) { return Leave(r, owner, h.now) })
	want := Answer{Verdict: NotHeld}
	if before.place(owner) >= 0 {
		want.Verdict = Done
	}
	if i := before.hold(owner); i >= 0 {
		want = Answer{Verdict: Done, Token: before.Holds[i].Token}
		before.Holds = without(before.Holds, i)
	}
	h.untouched(t, before)
	h.leaves(owner)
	if ans != want {
		t.Fatalf("leave: %+v, want %+v", ans, want)
	}
}

// advance: as many waiters from the head of the queue as there is room for are
// admitted as they asked, or notified; all others are unchanged.
func (h *history) advance(t *rapid.T, floor fence.Token) {
	var turns []Turn
	before, _ := h.step(t, func(r Record) (Record, Answer) {
		r, turns = Advance(r, floor, h.now)
		return r, Answer{}
	})
	room := spare(before)
	inside := len(before.Holds)
	for _, turn := range turns {
		p := h.alive()[0]
		if turn.Owner != p.Owner {
			t.Fatalf("the turn is of %s, want %s", turn.Owner, p.Owner)
		}
		if room -= p.Weight; room < 0 {
			t.Fatalf("%s got a turn without room for it", p.Owner)
		}
		h.leaves(p.Owner)
		if p.Barge != (turn.Token == 0) {
			t.Fatalf("the place %+v got the turn %+v, want it notified if it barges, and otherwise granted", p, turn)
		}
		if p.Barge {
			continue
		}
		got := h.record.Holds[inside]
		if want := (Hold{Owner: p.Owner, Meta: p.Meta, Weight: p.Weight, Count: 1, Slot: got.Slot, Slots: got.Slots, Token: turn.Token, Expiry: p.Expiry, Granted: h.now}); got != want || turn.ExpiresIn != p.Expiry.Sub(h.now) {
			t.Fatalf("handed on as %+v, %+v, want %+v", got, turn, want)
		}
		h.fresh(t, p.Owner, inside > 0, p.Weight, floor, turn.Token)
		inside++
	}
	if len(h.record.Holds) != inside || !slices.Equal(h.record.Holds[:len(before.Holds)], before.Holds) {
		t.Fatalf("advance changed %+v to %+v", before, h.record)
	}
	if queue := h.alive(); len(queue) > 0 && queue[0].Weight <= room {
		t.Fatalf("%s of weight %d got no turn with room of %d", queue[0].Owner, queue[0].Weight, room)
	}
}

// breaks: a lease that is broken ends, now or when its owner releases it or it expires.
// No other lease changes, and no waiter.
func (h *history) breaks(t *rapid.T, owner string, wrong fence.Token, now bool) {
	b := Break{Owner: owner, Token: h.tokens[owner] + wrong, Now: now, Note: "note", Keep: 9}
	before, ans := h.step(t, func(r Record) (Record, Answer) { return BreakLease(r, b, h.now) })
	want := before
	i := before.hold(owner)
	switch is := before.Broken; {
	case i >= 0 && wrong == 0:
		held := before.Holds[i]
		want.Broken = &Broken{Owner: owner, Token: b.Token, Note: "note", Expiry: held.Expiry.Add(b.Keep)}
		if held.Broken {
			want.Broken = is
		}
		wantAns := Answer{Verdict: Done, Token: b.Token}
		if now {
			want.Holds, want.Tombstones = without(want.Holds, i), h.record.Tombstones
			if !Expire(h.record, held.Expiry-1).buried(owner) {
				t.Fatalf("late requests of %s are not refused: %+v", owner, h.record)
			}
		} else {
			held.Broken = true
			want.Holds = replaced(want.Holds, i, held)
			wantAns.Count, wantAns.ExpiresIn = held.Count, held.Expiry.Sub(h.now)
		}
		if ans != wantAns {
			t.Fatalf("break of %+v: %+v, want %+v", held, ans, wantAns)
		}
	case is != nil && is.Owner == owner && is.Token == b.Token:
		if ans != (Answer{Verdict: Done, Token: b.Token}) {
			t.Fatalf("a second break of %s: %+v, want Done", owner, ans)
		}
	case ans != Answer{Verdict: NotHeld}:
		t.Fatalf("break without a lease: %+v, want NotHeld", ans)
	}
	if !reflect.DeepEqual(h.record, want) {
		t.Fatalf("the break of %s made %+v, want %+v", owner, h.record, want)
	}
}

// check: the properties that hold at any time.
func (h *history) check(t *rapid.T) {
	if err := h.record.Check(); err != nil {
		t.Fatalf("%v: %+v", err, h.record)
	}
	r := Expire(h.record, h.now)
	if twice := Expire(r, h.now); !reflect.DeepEqual(r, twice) {
		t.Fatalf("expired twice: %+v, once: %+v", twice, r)
	}
	if left := spare(r); left < 0 {
		t.Fatalf("the leases exceed the limit of %d by %d: %+v", r.Spec.Limit, -left, r.Holds)
	}
	seen, slots := make(map[string]bool), make(map[int64]bool)
	for _, v := range r.Holds {
		if slots[v.Slot] || v.Slot < 0 || v.Slot >= r.Spec.Limit {
			t.Fatalf("slot %d is out of range or used twice in %+v", v.Slot, r)
		}
		slots[v.Slot] = true
		if seen[v.Owner] || v.Expiry <= h.now || v.Count < 1 || v.Weight < 1 {
			t.Fatalf("the lease %+v is invalid, expired, or its owner's second in %+v", v, r)
		}
		if v.Token != h.tokens[v.Owner] {
			t.Fatalf("the token of %s went from %v to %v", v.Owner, h.tokens[v.Owner], v.Token)
		}
		seen[v.Owner] = true
	}
	for _, p := range r.Queue {
		if seen[p.Owner] || p.Expiry <= h.now || r.buried(p.Owner) {
			t.Fatalf("the place %+v is expired, buried, or its owner's second in %+v", p, r)
		}
		seen[p.Owner] = true
	}
	if queue := h.alive(); !slices.Equal(r.Queue, queue) {
		t.Fatalf("the queue is %+v, want %+v in order of arrival", r.Queue, queue)
	}
	if r.Token != h.last {
		t.Fatalf("the record's token is %v, want the last one granted, %v", r.Token, h.last)
	}
}

func (h *history) held(t *rapid.T, owner string) Hold {
	i := h.record.hold(owner)
	if i < 0 {
		t.Fatalf("%s has no lease in %+v", owner, h.record)
	}
	return h.record.Holds[i]
}

// spare is the unused part of the limit, computed independently of the rule.
func spare(r Record) int64 {
	left := r.Spec.Limit
	for _, h := range r.Holds {
		left -= max(h.Weight, 1)
	}
	return left
}
