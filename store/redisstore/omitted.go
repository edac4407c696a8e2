package redisstore

import (
	"strings"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// arrived handles the reply of the arrive script, on a new connection or an old one.
func (s *fleet) arrived(n *node, said resp.Value, isNew bool) error {
	n.Mu.Lock()
	first := !n.heard // over this connection
	n.heard = true
	n.Mu.Unlock()
	if refuses(said) {
		s.refused(n, said, isNew)
		if first && said.List[0].Num == 4 {
			s.recheckOmitted(n)
		}
	} else {
		marked, err := n.arrived(said)
		if err != nil || !marked {
			return err
		}
		s.lasts(n, said.List[3])
		if first && n.isCounting() {
			s.askHowLong(n)
		}
	}
	if !n.isSingle() {
		s.decideJoining()
	}
	s.adoptOmitted()
	return nil
}

// askHowLong has the other nodes looked at when n is in quarantine: other clients may have raised
// what quarantines have to allow for, and n may have forgotten that.
func (s *fleet) askHowLong(n *node) {
	for _, other := range s.nodes {
		other.Mu.Lock()
		if other != n && other.PipeLocked() != nil && other.arrives {
			other.lookLocked()
		}
		other.Mu.Unlock()
	}
}

// refuses reports whether the arrive script has changed nothing.
func refuses(said resp.Value) bool {
	if len(said.List) == 0 {
		return false
	}
	switch said.List[0].Num {
	case 4:
		return len(said.List) == 4
	case 6:
		return len(said.List) == 2
	}
	return said.List[0].Num == 7
}

// recheckOmitted runs after a connection to n if its mark names another membership. The node
// may have been down while that was replaced by ours: the other nodes are asked, since
// what is known about them may be out of date.
func (s *fleet) recheckOmitted(n *node) {
	if len(s.nodes) == 1 || len(s.membership.Next) > 0 {
		return
	}
	for _, other := range s.nodes {
		other.Mu.Lock()
		if other == n {
			other.omitted = true
		} else if other.fingerprint = ""; other.PipeLocked() != nil {
			other.lookLocked()
		}
		other.Mu.Unlock()
	}
}

// missed says so if a node belongs to a membership that ours has replaced, as a mark of another
// node records. A majority of our nodes has to record it before the node can adopt ours.
func (s *fleet) missed(e *script.MembershipError) error {
	old, next, joint := strings.Cut(e.List, ">")
	_, print := membership.Describe(strings.Split(old, ","))
	if joint && next != s.membership.Text {
		return e
	}
	for _, n := range s.nodes {
		n.Mu.Lock()
		replaced := n.fingerprint == s.membership.Fingerprint && n.before == print
		n.Mu.Unlock()
		if replaced {
			return &script.MembershipError{List: e.List, Ours: s.membership.Text}
		}
	}
	return e
}

// adoptOmitted makes nodes join our membership that were down when it replaced theirs. A
// majority of our nodes must record that replacement: they do so only after a majority of
// the old membership was told to refuse its clients and those have lost their leases. If
// our membership had been replaced in turn, no majority would name it any more.
func (s *fleet) adoptOmitted() {
	records := map[string]int{}
	for _, n := range s.nodes {
		n.Mu.Lock()
		if n.fingerprint == s.membership.Fingerprint {
			records[n.before]++
		}
		n.Mu.Unlock()
	}
	for _, n := range s.nodes {
		n.Mu.Lock()
		left, print := n.omitted && n.PipeLocked() != nil, n.fingerprint
		before, next, joint := strings.Cut(print, ">")
		if left && before != nodemark.Unknown && records[before] >= quorum.Majority(len(s.nodes)) && (!joint || next == s.membership.Fingerprint) {
			n.omitted = false
		} else {
			left = false
		}
		n.Mu.Unlock()
		if left {
			n.log.Info("node missed the replacement of its membership and joins the new one", "list", s.membership.Text)
			c := membership.SetCommand(s.membership.Fingerprint, s.membership.Text, s.membership.Fingerprint, print, before)
			n.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false)
		}
	}
}
