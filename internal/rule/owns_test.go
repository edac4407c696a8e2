package rule

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An ordered list of places means the same as a record in which every ask is fair and waits.
// After any history, the same owners hold the lock, the same owners wait in the same
// positions, and a further ask gets the same answer.
func TestOwnsDecidesAsAdmitAndAdvance(t *testing.T) {
	specs := []Spec{Mutex, Semaphore(2), Semaphore(3), {Limit: 3, Shared: true}}
	names := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		const now, ttl = 1, 1000
		var record Record
		var places []Ranked
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				p := Ranked{
					Owner:  rapid.SampledFrom(names).Draw(t, "owner"),
					Spec:   rapid.SampledFrom(specs).Draw(t, "spec"),
					Weight: rapid.Int64Range(0, 3).Draw(t, "weight"),
				}
				if slices.ContainsFunc(places, func(q Ranked) bool { return q.Owner == p.Owner }) {
					return // a place keeps what its owner asked for
				}
				var want Answer
				record, want = Admit(record, Ask{Spec: p.Spec, Owner: p.Owner, Weight: p.Weight, TTL: ttl, Wait: ttl, Fair: true}, now)
				list := append(slices.Clone(places), p)
				got := Owns(list, len(places))
				if got.Verdict != want.Verdict {
					t.Fatalf("%+v after %+v: %v, want %v", p, places, got.Verdict, want.Verdict)
				}
				if want.Verdict == Mismatch {
					return // its owner removes it
				}
				if got.Blocker.Waiting != want.Blocker.Waiting {
					t.Fatalf("%+v after %+v: blocker %+v, want %+v", p, places, got.Blocker, want.Blocker)
				}
				places = list
			},
			"end": func(t *rapid.T) {
				owner := rapid.SampledFrom(names).Draw(t, "owner")
				if record.hold(owner) >= 0 {
					record, _ = Release(record, End{Owner: owner}, now)
				} else {
					record, _ = Leave(record, owner, now)
				}
				record, _ = Advance(record, 0, now)
				places = slices.DeleteFunc(slices.Clone(places), func(p Ranked) bool { return p.Owner == owner })
			},
			"resize": func(t *rapid.T) {
				from := Semaphore(rapid.Int64Range(1, 5).Draw(t, "from"))
				to := Semaphore(rapid.Int64Range(1, 5).Draw(t, "to"))
				next, ans := Resize(record, from, to, now)
				if record = next; ans.Verdict != Done || len(places) == 0 || places[0].Spec == to {
					return
				}
				places = slices.Clone(places[:Holders(places)])
				for i := range places {
					places[i].Spec, places[i].Kept = to, true
				}
			},
			"": func(t *rapid.T) {
				var want []string
				for _, h := range record.Holds {
					want = append(want, h.Owner)
				}
				if n := Holders(places); n != len(want) {
					t.Fatalf("%d holders of %+v, want %q", n, places, want)
				}
				for _, p := range record.Queue {
					want = append(want, p.Owner)
				}
				for i, p := range places {
					ans := Owns(places, i)
					if p.Owner != want[i] || ans.Position != record.place(p.Owner)+1 || (ans.Verdict == Granted) != (record.hold(p.Owner) >= 0) {
						t.Fatalf("place %d of %+v: %+v, want owners %q", i, places, ans, want)
					}
				}
			},
		})
	})
}

// A place of another kind must be gone before those behind it can hold the lock, since a native
// client that wrote it takes the lock when no place is ahead of it.
func TestOwnsHoldsUpBehindAnotherKind(t *testing.T) {
	three := Semaphore(3)
	places := []Ranked{{Owner: "a", Spec: three}, {Owner: "native", Spec: Mutex}, {Owner: "b", Spec: three}}
	for i, want := range []Verdict{Granted, Mismatch, Busy} {
		if ans := Owns(places, i); ans.Verdict != want || ans.Spec != three {
			t.Errorf("place %d: %+v, want %v", i, ans, want)
		}
	}
	if ans := Owns(places, 2); ans.Position != 2 || !ans.Blocker.Waiting || ans.Blocker.Owner != "native" {
		t.Errorf("b: %+v, want position 2 behind the waiter native", ans)
	}
	if ans := Owns(places[1:], 0); ans.Verdict != Granted {
		t.Errorf("native, with no place ahead: %+v, want granted", ans)
	}
	if ans := Owns(places[1:], 1); ans.Verdict != Mismatch || ans.Blocker.Owner != "native" {
		t.Errorf("b behind a mutex: %+v, want a mismatch with native", ans)
	}
	if ans := Owns([]Ranked{{Owner: "a", Spec: three, Weight: 4}}, 0); ans.Verdict != Mismatch {
		t.Errorf("weight 4 of 3: %+v, want a mismatch", ans)
	}
}
