package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
)

// A server becomes one of several when the first client that wants a lock there writes their
// membership into its mark. From then on it refuses clients that use it alone. A wrong list must
// not take it away from them, so:
//
//   - A client that only looks at locks reads the mark, and writes nothing.
//   - A client that wants a lock first looks at all servers. Servers join if a majority of the list
//     belongs to it already, or if a majority does or can, and none belongs to others or is
//     in use alone.
//   - A server that is in use alone never joins; its own script decides that. Clients that use a server
//     alone leave a note there, which outlasts their leases (useAlone.lua).
//
// A client that dies between two servers leaves one that belongs to the list beside one that can
// still join: the next client goes on from there.

// Take prepares for a request that may change locks: from now on this client writes marks.
func (s *Fleet) Take(ctx context.Context) error {
	if s.Taking.Load() || len(s.Nodes) < 2 || !node.MarksLooked {
		return nil
	}
	select {
	case s.joining <- struct{}{}:
		defer func() { <-s.joining }()
	case <-ctx.Done(): // the one that has servers join waits for answers
		return ctx.Err()
	}
	if s.Taking.Load() {
		return nil
	}
	if _, certain := s.countStandings(); !certain { // each server has its say, if it answers
		if err := s.waitForStandings(ctx); err != nil {
			return err
		}
	}
	s.Taking.Store(true)
	s.decideJoining()
	answers, asked := make(answered, len(s.Nodes)), 0
	for _, n := range s.Nodes {
		if n.ArriveFirst(answers) {
			asked++
		}
	}
	// What these servers grant before they have answered does not count, but the errors would say
	// less.
	late := time.NewTimer(s.NodeTimeout(s.LongestTTL()))
	defer late.Stop()
	for done := range asked {
		if done == quorum.Majority(len(s.Nodes)) {
			late.Reset(20 * time.Millisecond) // a slow server must not delay the lock
		}
		select {
		case <-answers:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answered is a driver.Receiver that counts answers.
type answered chan struct{}

func (a answered) Receive(int, int, driver.Reply) { a <- struct{}{} }

// waitForStandings waits until the servers that are not connected have been looked at or do not
// answer.
func (s *Fleet) waitForStandings(ctx context.Context) error {
	p, asked := make(node.Poll, len(s.Nodes)), 0
	for _, n := range s.Nodes {
		if n.Standing() == node.Unknown && n.Enqueue(node.Call{Command: node.PingCommand, Timeout: s.Config.ConnectTimeout, Poll: p}, false) == nil {
			asked++
		}
	}
	for range asked {
		select {
		case <-p:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// countStandings reports whether servers may join. It is certain if a majority of each list has joined.
func (s *Fleet) countStandings() (may, certain bool) {
	var members, able, others quorum.Set
	for i, n := range s.Nodes {
		switch n.Standing() {
		case node.Member:
			members |= quorum.SetOf(i)
		case node.Free:
			able |= quorum.SetOf(i)
		case node.Theirs:
			others |= quorum.SetOf(i)
		}
	}
	may, certain = true, true
	cfg := s.QuorumConfig()
	for _, list := range cfg.JointSets() {
		need := quorum.Majority(list.Size())
		if (members & list).Size() >= need {
			continue
		}
		certain = false
		may = may && others&list == 0 && ((members|able)&list).Size() >= need
	}
	return may, certain
}

// decideJoining decides anew whether servers may join, and has them looked at that may now.
func (s *Fleet) decideJoining() {
	may, _ := s.countStandings()
	s.MayJoin.Store(may)
	s.OtherUse.Store(slices.ContainsFunc(s.Nodes, func(n *node.Node) bool { return n.Standing() == node.Theirs }))
	for _, n := range s.Nodes {
		n.Bar()
	}
}
