package etcdstore

import (
	"encoding/json"
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// Only the lease with that owner and token is broken, and once. With Now it is ended,
// whether it was broken before or not.
func TestToBreak(t *testing.T) {
	const floor = 1000
	mutex := []string{"a mutex 1 -", "b mutex 1 -"}
	permits := []string{"a 3 1 0", "b 3 2 -", "c 3 1 -"} // b has not noticed its turn, c waits
	readers := []string{"a rw 1 0", "b rw 1 1", "c rw 0 -"}
	token := func(place int) fence.Token { return tokenAt(floor, int64(10+place)) }
	last := &note{Owner: "z", Token: 7}
	for what, c := range map[string]struct {
		places []string
		broken int // 1: the first place is broken
		native int // 1: the first place is another kind of client's
		owner  string
		token  fence.Token
		now    bool
		step   breakStep
		at     int
	}{
		"holder":                       {places: mutex, owner: "a", token: token(0), step: breakMark},
		"holder, now":                  {places: mutex, owner: "a", token: token(0), now: true, step: breakEnd},
		"holder, again":                {places: mutex, broken: 1, owner: "a", token: token(0), step: breakTell},
		"holder, again and now":        {places: mutex, broken: 1, owner: "a", token: token(0), now: true, step: breakEnd},
		"holder with another token":    {places: mutex, owner: "a", token: token(1), step: breakNothing, at: -1},
		"another owner":                {places: mutex, owner: "x", token: token(0), now: true, step: breakNothing, at: -1},
		"waiter":                       {places: mutex, owner: "b", token: token(1), step: breakNothing, at: -1},
		"free lock":                    {owner: "a", token: token(0), step: breakNothing, at: -1},
		"permit":                       {places: permits, owner: "a", token: token(0), step: breakMark},
		"permit before it is taken":    {places: permits, owner: "b", token: token(1), step: breakNothing, at: -1},
		"waiter for a permit":          {places: permits, owner: "c", token: token(2), now: true, step: breakNothing, at: -1},
		"second reader":                {places: readers, owner: "b", token: token(1), step: breakMark, at: 1},
		"second reader, now":           {places: readers, broken: 1, owner: "b", token: token(1), now: true, step: breakEnd, at: 1},
		"writer that waits":            {places: readers, owner: "c", token: token(2), step: breakNothing, at: -1},
		"over":                         {owner: "z", token: 7, step: breakOver, at: -1},
		"over, and held by the next":   {places: mutex, owner: "z", token: 7, now: true, step: breakOver, at: -1},
		"another token than the note":  {places: mutex, owner: "z", token: 8, step: breakNothing, at: -1},
		"another kind of client":       {places: mutex, native: 1, owner: "a", token: token(0), step: breakForeign, at: -1},
		"over, and held by such":       {places: mutex, native: 1, owner: "z", token: 7, step: breakOver, at: -1},
		"behind such a kind of client": {places: mutex, native: 1, owner: "b", token: token(1), now: true, step: breakForeign, at: -1},
	} {
		v := lockOf(t, c.places...)
		for i := range v.places {
			v.places[i].Broken, v.places[i].native = i < c.broken, i < c.native
		}
		r := store.BreakRequest{Name: "name", Owner: c.owner, Token: c.token, Now: c.now}
		if step, at := v.toBreak(r, last, floor); step != c.step || at != c.at {
			t.Errorf("%s: step %d at %d, want step %d at %d", what, step, at, c.step, c.at)
		}
	}
}

// The transaction that breaks a lease leaves everything of the place but its value as it is,
// and keeps the token, which the new revision of the place would change.
func TestMarkKeepsTheLease(t *testing.T) {
	l := layout{"base"}
	v := lockOf(t, "a rw 1 0")
	e := v.places[0]
	e.lease, e.Made = 77, "attempt"
	r := store.BreakRequest{Name: "name", Owner: "a", Token: 1}
	then := mark(l, v, e, r, 5, 99).then
	var has record
	value := then[0].GetRequestPut()
	if err := json.Unmarshal(value.Value, &has); err != nil {
		t.Fatal(err)
	}
	if !value.IgnoreLease || string(value.Key) != e.key || !has.Broken || has.Token != e.token(5) || has.Owner != "a" || has.Made != "attempt" || !has.Shared {
		t.Errorf("%v", value)
	}
	var leases, keys = []int64{}, []string{}
	for _, op := range then[1:] {
		leases, keys = append(leases, op.GetRequestPut().Lease), append(keys, string(op.GetRequestPut().Key))
	}
	want := []string{"base/!broken/name/", "base/!broken/name/a attempt", "base/!inbox/process/1"}
	for i, key := range want {
		if keys[i] != key || leases[i] != []int64{99, 77, 77}[i] {
			t.Errorf("writes %q with leases %v, want %q", keys, leases, want)
			break
		}
	}
}
