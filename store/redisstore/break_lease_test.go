package redisstore

import (
	"testing"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/quorum"
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
		made  [2]string // the attempts of the records on the nodes that answer; "": the lock is a mutex
		found bool
	}{
		"shown":                     {random, 5, [2]string{"a", "a"}, true},
		"of a node":                 {random, 7, [2]string{"a", "a"}, true},
		"of none":                   {random, 6, [2]string{"a", "a"}, false},
		"mutex":                     {random, 7, [2]string{}, true},
		"mutex, of none":            {random, 6, [2]string{}, false},
		"fixed":                     {"me", 7, [2]string{"a", "a"}, true},
		"fixed, of none":            {"me", 6, [2]string{"a", "a"}, false},
		"fixed, of another attempt": {"me", 7, [2]string{"a", "b"}, false},
		"fixed mutex":               {"me", 7, [2]string{}, false}, // its attempts aren't shown
	} {
		cfg := quorum.Config{Nodes: 3}
		nodes, tokens, records, queues := make([]store.NodeOutcome, 3), make([]fence.Token, 3), make([]*script.Record, 3), make([][]store.Place, 3)
		nodes[2].Outcome = store.Unreachable
		for node, token := range []fence.Token{7, 5} {
			h := store.Holding{Holder: store.Holder{Owner: c.owner}, Token: token, Weight: 1}
			nodes[node], tokens[node] = store.NodeOutcome{Outcome: store.Taken, Holder: h.Holder}, token
			if made := c.made[node]; made != "" {
				records[node] = &script.Record{Kind: store.ReadWrite, Holders: []script.Held{{Holding: h, Made: made}}}
			}
		}
		state := stateOf("lock", cfg, nodes, tokens, queues)
		showShares(&state, cfg, nodes, records, tokens, queues)
		if !state.Held || state.Token != 5 {
			t.Errorf("%s: shown as %+v, want held with token 5", what, state)
		}
		if h, found := leaseOf(store.BreakRequest{Owner: c.owner, Token: c.asked}, state); found != c.found {
			t.Errorf("%s: %+v, %v, want found: %v", what, h, found, c.found)
		}
	}
}
