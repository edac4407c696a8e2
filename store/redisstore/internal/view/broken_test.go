package view

import (
	"testing"
	"time"

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
		v := New(cfg)
		v.Nodes[2].Outcome = store.Unreachable
		for node, token := range []fence.Token{7, 5} {
			h := store.Holding{Holder: store.Holder{Owner: c.owner}, Token: token, Weight: 1}
			v.Nodes[node], v.Tokens[node] = store.NodeOutcome{Outcome: store.Taken, Holder: h.Holder}, token
			if made := c.made[node]; made != "" {
				v.Records[node] = &script.Record{Kind: store.ReadWrite, Holders: []script.Held{{Holding: h, Made: made}}}
			}
		}
		state := v.State("lock")
		if !state.Held || state.Token != 5 {
			t.Errorf("%s: shown as %+v, want held with token 5", what, state)
		}
		if h, found := LeaseOf(store.BreakRequest{Owner: c.owner, Token: c.asked}, state); found != c.found {
			t.Errorf("%s: %+v, %v, want found: %v", what, h, found, c.found)
		}
	}
}

// A break that too few servers answer does not report that the lease is another one, although a
// server has it with a later token: the silent servers may have the one that was shown.
func TestResultOfABreak(t *testing.T) {
	for _, c := range []struct {
		name            string
		answered, later quorum.Set
		broken, other   bool
	}{
		{"a majority", quorum.SetOf(0, 1), 0, true, false},
		{"a majority beside a later token", quorum.SetOf(0, 1), quorum.SetOf(2), true, false},
		{"later on a majority", quorum.SetOf(0), quorum.SetOf(1, 2), false, true},
		{"later on one, and one is silent", quorum.SetOf(0), quorum.SetOf(1), false, false},
		{"later on one, and two are silent", 0, quorum.SetOf(1), false, false},
		{"nobody answers", 0, 0, false, false},
	} {
		if broken, other := BreakResult(quorum.Config{Nodes: 3}, c.answered, c.later); broken != c.broken || other != c.other {
			t.Errorf("%s: broken %v, another lease %v, want %v and %v", c.name, broken, other, c.broken, c.other)
		}
	}
}

// A lease that was broken lasts for as long as a majority can have it: with two of three servers,
// no longer than on the one where it ends first.
func TestRemainder(t *testing.T) {
	for what, c := range map[string]struct {
		left   [3]time.Duration // 0: it is not there
		silent quorum.Set
		want   time.Duration
	}{
		"on all":                 {[3]time.Duration{9 * time.Second, 7 * time.Second, 5 * time.Second}, 0, 7 * time.Second},
		"on two":                 {[3]time.Duration{9 * time.Second, 0, 5 * time.Second}, 0, 5 * time.Second},
		"on two, and one silent": {[3]time.Duration{9 * time.Second, 0, 5 * time.Second}, quorum.SetOf(1), 9 * time.Second},
		"on one":                 {[3]time.Duration{9 * time.Second}, 0, time.Millisecond},
	} {
		m, said := NewRemainder(3), make([]store.NodeOutcome, 3)
		for i, left := range c.left {
			said[i].Outcome = store.Granted
			if c.silent.Has(i) {
				said[i].Outcome = store.Unreachable
			}
			m.Note(i, left)
		}
		if left := m.Of(quorum.Config{Nodes: 3}, said); left != c.want {
			t.Errorf("%s: %v left, want %v", what, left, c.want)
		}
	}
}
