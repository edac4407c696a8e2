package etcdstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/store"
)

// lockOf returns a view of places that are given as "owner kind weight slot"; the slot is
// "-" for a place that waits or has not entered yet. The kind is "mutex", "rw" or a number of
// permits.
func lockOf(t *testing.T, places ...string) *view {
	t.Helper()
	l := layout{"base"}
	var entries []entry
	var slots []slot
	for i, p := range places {
		var owner, kind, in string
		var weight int64
		if _, err := fmt.Sscan(p, &owner, &kind, &weight, &in); err != nil {
			t.Fatal(err)
		}
		of := store.Lease{Owner: owner, Weight: weight}
		switch kind {
		case "mutex":
		case "rw":
			of.Kind = store.ReadWrite
		default:
			if _, err := fmt.Sscan(kind, &of.Kind.Limit); err != nil {
				t.Fatal(err)
			}
		}
		if kind == "rw" && weight == 0 {
			of.Weight = store.ReadWriteLimit
		}
		create := int64(10 + i)
		e := entry{record: recordOf(of, &lease{}, "process"), key: l.key("name", clientv3.LeaseID(i+1)), create: create, mod: create}
		e.In = kind == "mutex" && in != "-"
		entries = append(entries, e)
		if in != "-" && !e.In {
			s := slot{of: placeID{Suffix: suffix(clientv3.LeaseID(i + 1)), Create: create}}
			if _, err := fmt.Sscan(in, &s.number); err != nil {
				t.Fatal(err)
			}
			s.key = l.slot("name", s.number)
			slots = append(slots, s)
		}
	}
	return newView(l.lock("name"), entries, slots, 100)
}

// messages returns whom a place that leaves lets in, "owner in slot", or only tells, "owner look", if v is
// what it leaves behind.
func messages(t *testing.T, v *view, freed int64) string {
	t.Helper()
	l := layout{"base"}
	var all []string
	enters, number := false, ""
	for _, op := range l.admitNext(v, "name", freed).then {
		put := op.GetRequestPut()
		key, in := strings.CutPrefix(string(put.GetKey()), l.slots("name"))
		switch {
		case in:
			number = key
		case put.GetIgnoreValue():
			enters, number = true, "0"
		default:
			var m message
			if err := json.Unmarshal(put.Value, &m); err != nil {
				t.Fatal(err)
			}
			for _, e := range v.places {
				switch {
				case e.create != m.Create:
				case enters:
					all = append(all, e.Owner+" in "+number)
				default:
					all = append(all, e.Owner+" look")
				}
			}
			enters = false
		}
	}
	return strings.Join(all, ", ")
}

// A place that leaves notifies the waiters whose turn it is, with free slots, and the first
// that still waits.
func TestWaitersNotifiedToEnter(t *testing.T) {
	for _, x := range []struct {
		what   string
		places []string
		leaves int // index; -1: none
		want   string
	}{
		{"no waiter", []string{"a 3 1 0", "b 3 1 1"}, 0, ""},
		{"a permit is free", []string{"a 2 1 0", "b 2 1 1", "c 2 1 -", "d 2 1 -"}, 1, "c in 1, d look"},
		{"the slot of the first is free", []string{"a 2 1 0", "b 2 1 1", "c 2 1 -"}, 0, "c in 0"},
		{"a heavy holder leaves", []string{"a 4 3 0", "b 4 1 1", "c 4 1 -", "d 4 1 -", "e 4 2 -"}, 0, "c in 0, d look, e look"},
		{"a slot that a smaller semaphore no longer has", []string{"a 2 1 4", "b 2 1 3", "c 2 1 -", "d 2 1 -"}, 1, "c in 0, d look"},
		{"a heavy waiter is not passed", []string{"a 3 2 0", "b 3 1 1", "c 3 3 -", "d 3 1 -"}, 1, "c look"},
		{"a holder that has not entered yet keeps its slot", []string{"a 4 1 0", "b 4 1 2", "c 4 1 -", "d 4 1 -", "e 4 1 -"}, 0, "c in 0, d look, e look"},
		{"readers after a writer", []string{"w rw 0 0", "a rw 1 -", "b rw 1 -", "x rw 0 -", "c rw 1 -"}, 0, "a in 0, b in 1, x look"},
		{"a writer after readers", []string{"a rw 1 0", "w rw 0 -", "b rw 1 -"}, 0, "w in 0, b look"},
		{"readers remain", []string{"a rw 1 0", "b rw 1 1", "w rw 0 -"}, 0, "w look"},
		{"a writer gives up beside readers", []string{"a rw 1 0", "w rw 0 -", "b rw 1 -", "x rw 0 -"}, 1, "b look, x look"},
		{"another kind waits in front", []string{"a 2 1 0", "m mutex 1 -", "c 2 1 -"}, 0, "m in 0, c look"},
		{"a mutex", []string{"a mutex 1 0", "b mutex 1 -", "c mutex 1 -"}, 0, "b in 0"},
		{"a waiter for a mutex gives up", []string{"a mutex 1 0", "b mutex 1 -", "c mutex 1 -"}, 1, ""},
		{"no place leaves", []string{"a 2 1 0", "b 2 1 -"}, -1, "b in 1"},
	} {
		v, freed := lockOf(t, x.places...), int64(-1)
		if x.leaves >= 0 {
			if s := v.places[x.leaves].slot; s != nil {
				freed = s.number
			}
			v = v.without(x.leaves)
		}
		if got := messages(t, v, freed); got != x.want {
			t.Errorf("%s: tells %q, want %q", x.what, got, x.want)
		}
	}
}

// If many waiters have their turn at once, one transaction notifies some of them, and the
// last of those reads the queue and notifies the next.
func TestManyWaitersAreNotifiedInTurn(t *testing.T) {
	places := []string{"w rw 0 0"}
	for i := range 200 {
		places = append(places, fmt.Sprintf("r%d rw 1 -", i))
	}
	passed := strings.Split(messages(t, lockOf(t, places...).without(0), 0), ", ")
	if len(passed) != mostTold || passed[0] != "r0 in 0" || passed[mostTold-1] != fmt.Sprintf("r%d look", mostTold-1) {
		t.Errorf("%d waiters are notified: %q, want %d, the last of which looks", len(passed), passed, mostTold)
	}
}

// A slot belongs to the place that made it, not to a later place with the same key.
func TestSlotOfAnEarlierPlace(t *testing.T) {
	v := lockOf(t, "a 2 1 0", "b 2 1 -")
	v.places[0].create++
	v = newView(v.prefix, v.places, []slot{{of: v.places[0].slot.of, number: 0}}, 101)
	if e := v.places[0]; e.slot != nil || v.freeSlot(0) != 1 {
		t.Errorf("slot %+v, free slot %d, want no slot and 1", e.slot, v.freeSlot(0))
	}
}
