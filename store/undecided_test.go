package store_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// A lock is free if it is neither held nor undecided. Otherwise the error about it names a holder,
// or one that may hold it and the nodes that do not answer.
func TestStateThatMayBeHeld(t *testing.T) {
	x := store.Holding{Holder: store.Holder{Owner: "x"}, Token: 1, ExpiresIn: 2 * time.Second, Weight: 1}
	y := store.Holding{Holder: store.Holder{Owner: "y"}, Token: 2, ExpiresIn: time.Second, Weight: 1, Kind: store.ReadWrite}
	nodes := []store.NodeOutcome{{Node: "a:1", Outcome: store.Taken}, {Node: "b:1", Outcome: store.TimedOut}, {Node: "c:1", Outcome: store.Refused, Err: errors.New("NOPERM")}}
	asReader := x
	asReader.Kind = store.ReadWrite
	for _, c := range []struct {
		name   string
		state  store.State
		leases []store.Holding
		text   string
	}{
		{"free", store.State{Name: "l", Nodes: nodes}, nil, ""},
		{"held", store.State{Name: "l", Held: true, Holder: x.Holder, Token: x.Token, ExpiresIn: x.ExpiresIn, Nodes: nodes}, []store.Holding{x},
			`lock "l" is held by x, expires in 2s unless renewed`},
		{"undecided", store.State{Name: "l", Undecided: []store.Holding{x, y}, Nodes: nodes}, []store.Holding{x, y},
			`lock "l" may be held by x, for at most 2s unless renewed: no answer from b:1 (timed out), c:1 (refused)`},
		{"held beside others that are undecided", store.State{Name: "l", Held: true, Kind: store.ReadWrite, Holders: []store.Holding{x}, Undecided: []store.Holding{y}, Nodes: nodes}, []store.Holding{asReader, y},
			`lock "l" is held by x, expires in 2s unless renewed`},
	} {
		busy := c.state.InUse()
		if free := c.text == ""; c.state.Free() != free || (busy == nil) != free {
			t.Errorf("%s: free %v, in use as %v, want free %v", c.name, c.state.Free(), busy, free)
		}
		if busy != nil && busy.Error() != c.text {
			t.Errorf("%s: %v, want %s", c.name, busy, c.text)
		}
		if got := c.state.Leases(); !reflect.DeepEqual(got, c.leases) {
			t.Errorf("%s: leases %+v, want %+v", c.name, got, c.leases)
		}
		if len(c.state.Holders) > 0 && !reflect.DeepEqual(c.state.Holders[0], x) {
			t.Errorf("%s: Leases changed Holders to %+v", c.name, c.state.Holders)
		}
	}
}

// A node in quarantine is not silent, and neither is one whose key is no lock: no lease is there.
func TestSilentNodes(t *testing.T) {
	silent := []store.Outcome{store.Pending, store.Unreachable, store.TimedOut, store.Refused, store.Loading, store.Unsettled}
	for o := store.Pending; o <= store.Unsettled; o++ {
		if got, want := (store.NodeOutcome{Outcome: o}).Silent(), slices.Contains(silent, o); got != want {
			t.Errorf("%v: silent %v, want %v", o, got, want)
		}
	}
	if text := store.Silent([]store.NodeOutcome{{Node: "a", Outcome: store.Quarantined}}); text != "" {
		t.Errorf("%q, want nothing of a node that is not silent", text)
	}
}
