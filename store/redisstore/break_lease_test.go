package redisstore

import (
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A lease has token 7 on two of three nodes and 5 on the last. Without one of the two, 5 is shown,
// and an operator who saw 7 before still breaks the lease.
func TestLeaseOf(t *testing.T) {
	random := store.NewOwner()
	for what, c := range map[string]struct {
		owner string
		asked fence.Token
		made  [3]string // the attempts of the nodes' records; "": the lock is a mutex
		found bool
	}{
		"shown":                     {random, 5, [3]string{"a", "a", "a"}, true},
		"of a node":                 {random, 7, [3]string{"a", "a", "a"}, true},
		"of none":                   {random, 6, [3]string{"a", "a", "a"}, false},
		"mutex":                     {random, 7, [3]string{}, true},
		"mutex, of none":            {random, 6, [3]string{}, false},
		"fixed":                     {"me", 7, [3]string{"a", "a", "a"}, true},
		"fixed, of none":            {"me", 6, [3]string{"a", "a", "a"}, false},
		"fixed, of another attempt": {"me", 7, [3]string{"a", "b", "b"}, false},
		"fixed mutex":               {"me", 7, [3]string{}, false}, // its attempts aren't shown
	} {
		holder := store.Holder{Owner: c.owner}
		state := store.State{Held: true, Holder: holder, Token: 5, Nodes: make([]store.NodeOutcome, 3)}
		seen := views{nodes: state.Nodes, tokens: make([]fence.Token, 3), records: make([]*script.Record, 3)}
		for node, token := range map[int]fence.Token{0: 7, 2: 5} {
			state.Nodes[node] = store.NodeOutcome{Outcome: store.Taken, Holder: holder}
			seen.tokens[node] = token
			if c.made[node] != "" {
				seen.records[node] = &script.Record{Holders: []script.Held{{Holding: store.Holding{Holder: holder, Token: token}, Made: c.made[node]}}}
			}
		}
		h, found := leaseOf(store.BreakRequest{Owner: c.owner, Token: c.asked}, state, seen)
		if found != c.found || found && h.Token != 5 {
			t.Errorf("%s: %+v, %v, want found: %v", what, h, found, c.found)
		}
	}
}
