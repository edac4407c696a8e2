package rule

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

func breaks(owner string, token fence.Token, now bool) action {
	return action{"break " + owner, func(r Record, at clock.Instant) (Record, Answer) {
		return BreakLease(r, Break{Owner: owner, Token: token, Now: now, Note: "by " + owner, Keep: time.Second}, at)
	}}
}

// A lease that is broken cannot be renewed, and the lock is free when its owner has
// released it or when it ends.
func TestBreak(t *testing.T) {
	granted := Answer{Verdict: Granted, Token: 1, Count: 1, ExpiresIn: 100 * ms}
	broken := func(left time.Duration) Answer {
		return Answer{Verdict: Done, Token: 1, Count: 1, ExpiresIn: left}
	}
	a := Ask{Spec: Mutex, Owner: "a", TTL: 100 * ms}
	b := Ask{Spec: Mutex, Owner: "b", TTL: 100 * ms}
	busy := func(left time.Duration) Answer {
		return Answer{Verdict: Busy, Blocker: Blocker{Owner: "a"}, ExpiresIn: left}
	}
	for name, steps := range map[string][]step{
		"until the release": {
			{0, ask(a), granted},
			{10 * ms, breaks("a", 2, false), Answer{Verdict: NotHeld}},
			{10 * ms, breaks("b", 1, false), Answer{Verdict: NotHeld}},
			{10 * ms, breaks("a", 1, false), broken(90 * ms)},
			{20 * ms, breaks("a", 1, false), broken(80 * ms)},
			{30 * ms, renew("a", 100*ms), Answer{Verdict: NotHeld}},
			{30 * ms, ask(a), Answer{Verdict: Buried}},
			{30 * ms, ask(b), busy(70 * ms)},
			{40 * ms, release("a"), Answer{Verdict: Done, Token: 1}},
			{40 * ms, breaks("a", 1, false), Answer{Verdict: Done, Token: 1}},
			{40 * ms, ask(a), Answer{Verdict: Buried}},
			{40 * ms, ask(b), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
			{50 * ms, breaks("a", 1, true), Answer{Verdict: Done, Token: 1}},
			{50 * ms, renew("b", 100*ms), Answer{Verdict: Done, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
		},
		"until the expiry": {
			{0, ask(a), granted},
			{10 * ms, breaks("a", 1, false), broken(90 * ms)},
			{99 * ms, ask(b), busy(1 * ms)},
			{100 * ms, ask(b), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
			{100 * ms, breaks("a", 1, false), Answer{Verdict: Done, Token: 1}},
		},
		"now": {
			{0, ask(a), granted},
			{10 * ms, breaks("a", 1, true), Answer{Verdict: Done, Token: 1}},
			{10 * ms, ask(b), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
			{20 * ms, renew("a", 100*ms), Answer{Verdict: NotHeld}},
			{20 * ms, release("a"), Answer{Verdict: NotHeld}},
			{20 * ms, release("b"), Answer{Verdict: Done, Token: 2}},
			{30 * ms, ask(a), Answer{Verdict: Buried}},
			{100 * ms, ask(a), Answer{Verdict: Granted, Token: 3, Count: 1, ExpiresIn: 100 * ms}},
		},
		"first a request, then now": {
			{0, ask(a), granted},
			{10 * ms, breaks("a", 1, false), broken(90 * ms)},
			{20 * ms, breaks("a", 1, true), Answer{Verdict: Done, Token: 1}},
			{20 * ms, ask(b), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
		},
		"another attempt of the owner": {
			{0, ask(Ask{Spec: Mutex, Owner: "a", Attempt: "1", TTL: 100 * ms}), granted},
			{10 * ms, breaks("a", 1, true), Answer{Verdict: Done, Token: 1}},
			{20 * ms, ask(Ask{Spec: Mutex, Owner: "a", Attempt: "1", TTL: 100 * ms}), Answer{Verdict: Buried}},
			{20 * ms, ask(Ask{Spec: Mutex, Owner: "a", Attempt: "2", TTL: 100 * ms}), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
			{30 * ms, breaks("a", 1, true), Answer{Verdict: Done, Token: 1}},
			{30 * ms, renew("a", 100*ms), Answer{Verdict: Done, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
		},
		"one of several": {
			{0, ask(Ask{Spec: Semaphore(2), Owner: "a", TTL: 100 * ms}), granted},
			{0, ask(Ask{Spec: Semaphore(2), Owner: "b", TTL: 100 * ms}), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
			{10 * ms, breaks("a", 1, false), broken(90 * ms)},
			{10 * ms, renew("b", 100*ms), Answer{Verdict: Done, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
			{10 * ms, renew("a", 100*ms), Answer{Verdict: NotHeld}},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, steps) })
	}
}

// The note is kept for Break.Keep after the lease, and then the record is forgotten.
func TestBreakIsNoted(t *testing.T) {
	r := play(t, []step{
		{0, ask(Ask{Spec: Mutex, Owner: "a", TTL: 100 * ms}), Answer{Verdict: Granted, Token: 1, Count: 1, ExpiresIn: 100 * ms}},
		{10 * ms, breaks("a", 1, false), Answer{Verdict: Done, Token: 1, Count: 1, ExpiresIn: 90 * ms}},
		{20 * ms, release("a"), Answer{Verdict: Done, Token: 1}},
	})
	const start = clock.Instant(time.Hour)
	end := start.Add(100*ms + time.Second)
	if r.Broken == nil || *r.Broken != (Broken{Owner: "a", Token: 1, Note: "by a", Expiry: end}) {
		t.Errorf("broken %+v, want the note by a until %v", r.Broken, end)
	}
	if r = Expire(r, end-1); r.Broken == nil || r.Idle() {
		t.Errorf("the note %+v and idle %v a moment before its end, want it kept", r.Broken, r.Idle())
	}
	if r = Expire(r, end); r.Broken != nil || !r.Idle() {
		t.Errorf("the record at the end of the note: %+v, want it idle without a note", r)
	}
}

// Each of several nodes breaks the part of the lease that the request names, and no other one.
// It refuses late requests of the owner even if it has no part.
func TestBreakPart(t *testing.T) {
	breaksPart := func(owner string, p Part, now bool) action {
		return action{"break " + owner, func(r Record, at clock.Instant) (Record, Answer) {
			return BreakPart(r, Break{Owner: owner, Token: 7, Now: now, Keep: time.Second}, p, at)
		}}
	}
	two := Semaphore(2)
	a := Ask{Spec: two, Owner: "a", TTL: 100 * ms}
	me := Ask{Spec: two, Owner: "me", Attempt: "one", TTL: 100 * ms}
	waits := Ask{Spec: two, Owner: "b", Weight: 2, TTL: 100 * ms, Wait: 100 * ms, Fair: true}
	granted := Answer{Verdict: Granted, Token: 1, Count: 1, ExpiresIn: 100 * ms}
	later := Answer{Verdict: Mismatch, Blocker: Blocker{Owner: "a"}, ExpiresIn: 90 * ms}
	play(t, []step{
		{0, ask(a), granted},
		{10 * ms, breaksPart("a", Part{Token: 2, Tombstone: 500 * ms}, false), later},
		{10 * ms, breaksPart("a", Part{Made: "one", Tombstone: 500 * ms}, false), later},
		{10 * ms, renew("a", 100*ms), Answer{Verdict: Done, Token: 1, Count: 1, ExpiresIn: 100 * ms}},
		{10 * ms, breaksPart("a", Part{Token: 1, Tombstone: 500 * ms}, false), Answer{Verdict: Done, Token: 1, Count: 1, ExpiresIn: 100 * ms}},
		{20 * ms, renew("a", 100*ms), Answer{Verdict: NotHeld}},
		{109 * ms, ask(waits), Answer{Verdict: Busy, Blocker: Blocker{Owner: "a"}, ExpiresIn: 1 * ms, Position: 1}},
		{120 * ms, ask(a), Answer{Verdict: Buried}}, // although its part has ended
		{120 * ms, breaksPart("b", Part{Tombstone: 500 * ms}, false), Answer{Verdict: NotHeld}},
		{120 * ms, ask(waits), Answer{Verdict: Buried}}, // and its place is gone
		{120 * ms, ask(me), Answer{Verdict: Granted, Token: 2, Count: 1, ExpiresIn: 100 * ms}},
		{130 * ms, breaksPart("me", Part{Made: "one", Tombstone: 500 * ms}, true), Answer{Verdict: Done, Token: 2}},
		{130 * ms, ask(me), Answer{Verdict: Buried}},
		{510 * ms, ask(a), Answer{Verdict: Granted, Token: 3, Count: 1, ExpiresIn: 100 * ms}},
	})
}
