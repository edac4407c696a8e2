package fleet

import (
	"cmp"
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// A server that may have forgotten leases grants nothing for as long as the longest of them may
// last. So before a client asks for a longer lease than quarantines allow for, it raises that time in
// the marks of a majority of the servers. The other servers get it when they are connected
// again. Other clients learn of it from the marks; see lasts.

// Raise makes quarantines allow for the TTL of a request, if its lock needs them.
func (s *Fleet) Raise(ctx context.Context, r store.Lease) error {
	guarded := len(s.Nodes) > 1 || r.Require >= store.CrashSafe
	if !guarded || r.TTL <= max(s.Config.MaxTTL, time.Duration(s.allowed.Load())) || !node.MarksLooked {
		return nil
	}
	s.raising.Lock()
	defer s.raising.Unlock()
	if r.TTL <= time.Duration(s.allowed.Load()) {
		return nil
	}
	was := s.Raised.Load()
	s.Raised.Store(int64(r.TTL))
	want := uint64(config.QuarantineFor(r.TTL).Microseconds())
	nodes := s.Outcomes()
	var told quorum.Set
	cfg := s.QuorumConfig()
	command := func(i int) *script.Command { return cmp.Or(s.Nodes[i].Arrival(), node.PingCommand) }
	err := s.AskFor(ctx, command, s.Config.ConnectTimeout, func(a node.Answer) {
		n := s.Nodes[a.Node]
		nodes[a.Node].Outcome, nodes[a.Node].Err = a.Outcome, a.Err
		switch list := a.Value.List; {
		case a.Outcome != store.Granted:
		case len(list) == 0:
			nodes[a.Node].Outcome, nodes[a.Node].Err = store.Refused, membership.ErrUnidentified
		case len(list) == 7 && list[0].Num == 1:
			if longest, _ := list[3].Number(); longest >= want {
				told |= quorum.SetOf(a.Node)
			}
			n.Arrived(a.Value, false)
		default:
			n.Arrived(a.Value, false)
			nodes[a.Node].Outcome = store.Refused
			nodes[a.Node].Err = n.Barred(a.Reply)
		}
	})
	if err == nil && cfg.HasQuorum(told) {
		s.allowed.Store(int64(r.TTL))
		return nil
	}
	s.Raised.Store(was)
	if err != nil {
		return err
	}
	return &store.QuorumError{Op: "allow for the TTL of", Name: r.Name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
}

// askHowLong has the other nodes looked at when n is in quarantine: other clients may have raised
// what quarantines have to allow for, and n may have forgotten that.
func (s *Fleet) askHowLong(n *node.Node) {
	for _, other := range s.Nodes {
		if other != n {
			other.Look(true)
		}
	}
}

// lasts takes from a node the longest quarantine that any client has asked it for. Other nodes
// may have forgotten that length, and this client may have asked them for a shorter one.
func (s *Fleet) lasts(from *node.Node, quarantine resp.Value) {
	us, _ := quarantine.Number()
	d := time.Duration(min(us, 1<<50)) * time.Microsecond
	if d <= s.Quarantine() {
		return
	}
	s.Longest.Store(int64(d))
	from.Log.Warn("other clients use a longer max_ttl, so quarantines last longer; configure all clients with the same max_ttl", "quarantine", d, "ours", s.Config.Quarantine())
	for _, n := range s.Nodes {
		if n != from {
			n.Look(false)
		}
	}
}
