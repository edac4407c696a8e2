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
		entries = append(entries, e)
		if in != "-" {
			s := slot{successor: successor{Suffix: suffix(clientv3.LeaseID(i + 1)), Create: create}}
			if _, err := fmt.Sscan(in, &s.number); err != nil {
				t.Fatal(err)
			}
			s.key = l.slot("name", s.number)
			slots = append(slots, s)
		}
	}
	return newView(l.lock("name"), entries, slots, 100)
}

// messages returns what v tells each owner: "owner in slot" or "owner look".
func messages(t *testing.T, v *view) string {
	t.Helper()
	l := layout{"base"}
	ops := l.pass(v, "name", -1, mostTold).then
	if !v.places[0].Shared {
		ops = l.turns(v, mostTold)
	}
	return told(t, v, ops)
}

// told returns what operations tell the places of v. After "or" comes what they tell if an
// operation within them fails.
func told(t *testing.T, v *view, ops []operation) string {
	t.Helper()
	l := layout{"base"}
	var all []string
	for _, op := range ops {
		if part := op.GetRequestTxn(); part != nil {
			then, els := told(t, v, part.Success), told(t, v, part.Failure)
			if els != "" {
				then += " or " + els
			}
			all = append(all, then)
		}
		put := op.GetRequestPut()
		if !strings.HasPrefix(string(put.GetKey()), l.inbox("process")) {
			continue
		}
		var m message
		if err := json.Unmarshal(put.Value, &m); err != nil {
			t.Fatal(err)
		}
		for _, e := range v.places {
			switch {
			case e.create != m.Create:
			case m.Entered:
				all = append(all, fmt.Sprintf("%s in %d", e.Owner, m.Slot))
			default:
				all = append(all, e.Owner+" look")
			}
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
		{"a permit is free", []string{"a 2 1 0", "b 2 1 1", "c 2 1 -", "d 2 1 -"}, 1, "c look, d look"},
		{"the slot of the first is free", []string{"a 2 1 0", "b 2 1 1", "c 2 1 -"}, 0, "c look"},
		{"a heavy waiter is not passed", []string{"a 3 2 0", "b 3 1 1", "c 3 3 -", "d 3 1 -"}, 1, "c look"},
		{"a holder that has not entered yet keeps its slot", []string{"a 4 1 0", "b 4 1 2", "c 4 1 -", "d 4 1 -", "e 4 1 -"}, 0, "c look, d look, e look"},
		{"readers after a writer", []string{"w rw 0 0", "a rw 1 -", "b rw 1 -", "x rw 0 -", "c rw 1 -"}, 0, "a in 0, b in 1, x look"},
		{"a writer after readers", []string{"a rw 1 0", "w rw 0 -", "b rw 1 -"}, 0, "w in 0, b look"},
		{"readers remain", []string{"a rw 1 0", "b rw 1 1", "w rw 0 -"}, 0, "w look"},
		{"a writer gives up beside readers", []string{"a rw 1 0", "w rw 0 -", "b rw 1 -", "x rw 0 -"}, 1, "b look, x look"},
		{"another kind waits in front", []string{"a 2 1 0", "m mutex 1 -", "c 2 1 -"}, 0, "c look"},
		{"no place leaves", []string{"a 2 1 0", "b 2 1 -"}, -1, "b look"},
	} {
		v := lockOf(t, x.places...)
		if x.leaves >= 0 {
			v = v.without(x.leaves)
		}
		if got := messages(t, v); got != x.want {
			t.Errorf("%s: tells %q, want %q", x.what, got, x.want)
		}
	}
}

// A holder of a permit that leaves hands its slot to one place. Afterwards one more is let in
// if it is its turn, the others are told to look, and so is the first that still
// waits if it does not know.
func TestWaitersLetIn(t *testing.T) {
	for _, x := range []struct {
		what   string
		places []string
		leaves int
		knows  int64 // when the place was created that knows that it is the first to wait
		hand   string
		after  string // what would be left to do if nobody had been handed the slot
	}{
		{"nobody waits", []string{"a 3 1 0", "b 3 1 1"}, 0, 0, "", ""},
		{"a permit is free", []string{"a 2 1 0", "b 2 1 1", "c 2 1 -", "d 2 1 -"}, 1, 0, "c in 1, d look", "c in 1 or c look, d look"},
		{"the first to wait knows", []string{"a 2 1 0", "b 2 1 1", "c 2 2 -"}, 0, 12, "c look", ""},
		{"a heavy holder leaves", []string{"a 4 3 0", "b 4 1 1", "c 4 1 -", "d 4 1 -", "e 4 2 -"}, 0, 0, "c in 0, e look", "c in 0 or c look, d look, e look"},
		{"a heavy waiter is not passed", []string{"a 3 2 0", "b 3 1 1", "c 3 3 -", "d 3 1 -"}, 1, 0, "c look", "c look"},
		{"one that has not entered yet", []string{"a 3 1 0", "b 3 1 2", "c 3 1 -", "d 3 1 -", "e 3 1 -"}, 0, 0, "c in 0, e look", "c in 0 or c look, d look, e look"},
		{"another kind waits in front", []string{"a 2 1 0", "m mutex 1 -", "c 2 1 -"}, 0, 0, "c look", "c look"},
		{"the lock had more permits", []string{"a 2 1 4", "b 2 1 3", "c 2 1 -", "d 2 1 -"}, 1, 0, "d look", "c in 0 or c look, d look"},
	} {
		v := lockOf(t, x.places...)
		freed := v.places[x.leaves].slot.number
		v = v.without(x.leaves)
		l := layout{"base"}
		h := l.hand(v, "name", freed)
		var ops []operation
		if h.enter.reused {
			ops = append(ops, nested(txn{then: h.enter.then}))
		}
		if h.waiter != 0 {
			ops = append(ops, nested(h.look))
		}
		if got := told(t, v, ops); got != x.hand {
			t.Errorf("%s: hands on %q, want %q", x.what, got, x.hand)
		}
		if got := told(t, v, l.letIn(v, "name", x.knows, mostTold)); got != x.after {
			t.Errorf("%s: lets in %q, want %q", x.what, got, x.after)
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
	passed := strings.Split(messages(t, lockOf(t, places...).without(0)), ", ")
	if len(passed) != mostTold || passed[0] != "r0 in 0" || passed[mostTold-1] != fmt.Sprintf("r%d look", mostTold-1) {
		t.Errorf("%d waiters are notified: %q, want %d, the last of which looks", len(passed), passed, mostTold)
	}
	places[0] = "w 200 200 0"
	for i := range 200 {
		places[i+1] = fmt.Sprintf("r%d 200 1 -", i)
	}
	v := lockOf(t, places...).without(0)
	in := strings.Split(told(t, v, layout{"base"}.letIn(v, "name", 0, mostTold)), ", ")
	if len(in) != mostTold || in[0] != "r0 in 0 or r0 look" || in[mostTold-1] != fmt.Sprintf("r%d look", mostTold-1) {
		t.Errorf("%d waiters are let in: %q, want %d, the last of which looks", len(in), in, mostTold)
	}
}

// A slot belongs to the place that made it, not to a later place with the same key.
func TestSlotOfAnEarlierPlace(t *testing.T) {
	v := lockOf(t, "a 2 1 0", "b 2 1 -")
	v.places[0].create++
	v = newView(v.prefix, v.places, []slot{{successor: v.places[0].slot.successor, number: 0}}, 101)
	if e := v.places[0]; e.slot != nil || v.freeSlot(0) != 1 {
		t.Errorf("slot %+v, free slot %d, want no slot and 1", e.slot, v.freeSlot(0))
	}
}
