package fleet

import (
	"strings"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// recheckOmitted runs after a connection to n if its mark names another membership. The node
// may have been down while that was replaced by ours: the other nodes are asked, since
// what is known about them may be out of date.
func (s *Fleet) recheckOmitted(n *node.Node) {
	if len(s.Nodes) == 1 || len(s.Membership.Next) > 0 {
		return
	}
	n.Omit()
	for _, other := range s.Nodes {
		if other != n {
			other.AskList()
		}
	}
}

// Missed implements node.Others. It says so if a node belongs to a membership that ours has replaced, as
// a mark of another node records. A majority of our nodes has to record it before the node can adopt ours.
func (s *Fleet) Missed(e *script.MembershipError) error {
	old, next, joint := strings.Cut(e.List, ">")
	_, print := membership.Describe(strings.Split(old, ","))
	if joint && next != s.Membership.Text {
		return e
	}
	for _, n := range s.Nodes {
		if ours, before := n.List(); ours == s.Membership.Fingerprint && before == print {
			return &script.MembershipError{List: e.List, Ours: s.Membership.Text}
		}
	}
	return e
}

// adoptOmitted makes nodes join our membership that were down when it replaced theirs. A
// majority of our nodes must record that replacement: they do so only after a majority of
// the old membership was told to refuse its clients and those have lost their leases. If
// our membership had been replaced in turn, no majority would name it any more.
func (s *Fleet) adoptOmitted() {
	records := map[string]int{}
	for _, n := range s.Nodes {
		if print, before := n.List(); print == s.Membership.Fingerprint {
			records[before]++
		}
	}
	for _, n := range s.Nodes {
		n.Adopt(records)
	}
}
