package quorum

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// renewal returns the verdict of a renewal by three nodes, of which the first have answered with
// these numbers and the others that the lock is free, and the numbers that heals carry.
func renewal(said ...rule.Numbers) string {
	v := NewVote(Config{Nodes: 3, NodeTimeout: time.Second}, Extend, 1)
	var heals []Send
	for i := range 3 {
		e := Event{Kind: Absent, Node: i, Op: Extend}
		if i < len(said) {
			e = Event{Kind: Yes, Node: i, Op: Extend, Numbers: said[i]}
		}
		heals = v.Step(e, 2, heals)
	}
	text := verdictNames[v.Verdict()]
	for _, h := range heals {
		text += fmt.Sprintf(", heals node %d with %d", h.Node, h.Number)
	}
	for i := range said {
		if n, apart := v.Apart(i); apart {
			text += fmt.Sprintf(", node %d has %d", i, n)
		}
	}
	return text
}

// renewals are renewals and what becomes of them.
var renewals = []struct {
	said []rule.Numbers
	want string
}{
	{[]rule.Numbers{{}, {}}, "won, heals node 2 with 0"},
	{[]rule.Numbers{{Own: 3}, {Own: 3}}, "won, heals node 2 with 3"},
	{[]rule.Numbers{{Own: 2}, {Own: 3}}, "lost, node 0 has 2, node 1 has 3"},
	{[]rule.Numbers{{Own: 2, Before: 3}, {Own: 3}}, "won, heals node 2 with 3"},
	{[]rule.Numbers{{Own: 2, Before: 3}, {Own: 2, Before: 3}}, "won, heals node 2 with 2"},
	{[]rule.Numbers{{Own: 2, Before: 3}, {Own: 4, Before: 3}}, "won, heals node 2 with 3"},
	{[]rule.Numbers{{Own: 3}, {Own: 2}, {Own: 3}}, "won"},
	{[]rule.Numbers{{Own: 3}, {Own: 2}, {Own: 4}}, "lost, node 0 has 3, node 1 has 2, node 2 has 4"},
	{[]rule.Numbers{{Own: 3}}, "lost"},
}

// A renewal counts only nodes that have a number of permits in common.
func TestRenewalCountsNodesWithANumberInCommon(t *testing.T) {
	for _, c := range renewals {
		if got := renewal(c.said...); got != c.want {
			t.Errorf("nodes with the numbers %+v: %s, want %s", c.said, got, c.want)
		}
	}
}
