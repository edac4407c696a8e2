package redisstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A server that may have forgotten leases grants nothing for as long as the longest of them may
// last. So before a client asks for a longer lease than quarantines allow for, it raises that time in
// the marks of a majority of the servers. Those that do not answer get it when they are connected
// again. Other clients learn of it from the marks; see lasts.

// raise makes quarantines allow for the TTL of a request, if its lock needs them.
func (s *engine) raise(ctx context.Context, r store.Lease) error {
	guarded := len(s.nodes) > 1 || r.Require >= store.CrashSafe
	if !guarded || r.TTL <= max(s.o.MaxTTL, time.Duration(s.allowed.Load())) || !marksLooked {
		return nil
	}
	s.raising.Lock()
	defer s.raising.Unlock()
	if r.TTL <= time.Duration(s.allowed.Load()) {
		return nil
	}
	was := s.raised.Load()
	s.raised.Store(int64(r.TTL))
	want := uint64(config.QuarantineFor(r.TTL).Microseconds())
	nodes := s.outcomes()
	var told quorum.Set
	cfg := s.quorumConfig()
	command := func(node int) *script.Command {
		n := s.nodes[node]
		n.Mu.Lock()
		defer n.Mu.Unlock()
		if c := n.arrivalLocked(false); c != nil {
			return c
		}
		return pingCommand
	}
	err := s.askFor(ctx, command, s.o.ConnectTimeout, func(a looked) {
		n := s.nodes[a.node]
		nodes[a.node].Outcome, nodes[a.node].Err = a.Outcome, a.Err
		switch list := a.Value.List; {
		case a.Outcome != store.Granted:
		case len(list) == 0:
			nodes[a.node].Outcome, nodes[a.node].Err = store.Refused, membership.ErrUnidentified
		case len(list) == 7 && list[0].Num == 1:
			if longest, _ := list[3].Number(); longest >= want {
				told |= quorum.SetOf(a.node)
			}
			s.arrived(n, a.Value, false)
		default:
			s.arrived(n, a.Value, false)
			nodes[a.node].Outcome = store.Refused
			nodes[a.node].Err = n.barred(a.Reply)
		}
	})
	if err == nil && cfg.HasQuorum(told) {
		s.allowed.Store(int64(r.TTL))
		return nil
	}
	s.raised.Store(was)
	if err != nil {
		return err
	}
	return &store.QuorumError{Op: "allow for the TTL of", Name: r.Name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
}

// barred returns why the arrive script has changed nothing.
func (f *fitness) barred(r script.Reply) error {
	switch list := r.Value.List; {
	case list[0].Num == 4:
		return script.OtherMembership(list[1]).Err
	case list[0].Num == 5 && len(list) == 2:
		return script.OtherVersion(list[1]).Err
	case list[0].Num == 6 && len(list) == 2:
		return usedAlone(string(list[1].Text))
	}
	return errNotJoined
}
