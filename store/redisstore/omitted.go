package redisstore

import (
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
)

// recheckOmitted runs after a connection to n if its mark names another membership. The node
// may have been down while that was replaced by ours: the other nodes are asked, since
// what is known about them may be out of date.
func (n *node) recheckOmitted() {
	if n.isSingle() || len(n.s.membership.Next) > 0 {
		return
	}
	for _, other := range n.s.nodes {
		other.mu.Lock()
		if other == n {
			other.omitted = true
		} else if other.fingerprint = ""; other.wire != nil {
			other.lookLocked()
		}
		other.mu.Unlock()
	}
}

// adoptOmitted makes nodes join our membership that were down when it replaced theirs. A
// majority of our nodes must record that replacement: they do so only after a majority of
// the old membership was told to refuse its clients and those have lost their leases. If
// our membership had been replaced in turn, no majority would name it any more.
func (s *Store) adoptOmitted() {
	records := map[string]int{}
	for _, n := range s.nodes {
		n.mu.Lock()
		if n.fingerprint == s.membership.Fingerprint {
			records[n.before]++
		}
		n.mu.Unlock()
	}
	for _, n := range s.nodes {
		n.mu.Lock()
		left, print := n.omitted && n.wire != nil, n.fingerprint
		before, next, joint := strings.Cut(print, ">")
		if left && before != nodemark.Unknown && records[before] >= quorum.Majority(len(s.nodes)) && (!joint || next == s.membership.Fingerprint) {
			n.omitted = false
		} else {
			left = false
		}
		n.mu.Unlock()
		if left {
			n.log.Info("node missed the replacement of its membership and joins the new one", "list", s.membership.Text)
			c := membership.SetCommand(s.membership.Fingerprint, s.membership.Text, s.membership.Fingerprint, print, before)
			n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false)
		}
	}
}
