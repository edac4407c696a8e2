package redisstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// errPartChanged is what a node said that has got another part of the lease since it was asked.
var errPartChanged = errors.New("its part of the lease has just changed")

// breakParts breaks one of the leases of a lock that several can hold, on several nodes.
// records are what they have. Each node breaks the part of the lease that it was shown
// with, and refuses late requests of the owner. So one without a part counts as well: no
// majority renews the lease or gets it back from then on.
//
// A part changes if the node is just given the lease back, or if the lease is downgraded.
// Then all nodes are asked once more.
func breakParts(ctx context.Context, s *engine, r store.BreakRequest, records []*script.Record) (time.Duration, error) {
	const rounds = 3
	for round := 1; ; round++ {
		left, err := breakEach(ctx, s, r, records, s.longestLease())
		switch changed, failed := errors.AsType[*store.QuorumError](err); {
		case err == nil && r.Now:
			return 0, nil
		case err == nil:
			return left, nil
		case round == rounds || !failed || !slices.ContainsFunc(changed.Nodes, func(n store.NodeOutcome) bool { return errors.Is(n.Err, errPartChanged) }):
			return 0, err
		}
		state, seen, err := s.inspect(ctx, r.Name)
		if err != nil {
			return 0, err
		}
		if _, found := leaseOf(r, state); !found {
			return overLease(r, state)
		}
		records = seen.records
	}
}

// hasPart reports whether a node has a part of a lease of owner.
func hasPart(owner string, records []*script.Record) bool {
	return slices.ContainsFunc(records, func(r *script.Record) bool { return r.Of(owner) != nil })
}

// breakEach has each node break the part that its record has of a lease. It returns how long the
// lease can last.
func breakEach(ctx context.Context, s *engine, r store.BreakRequest, records []*script.Record, tombstone time.Duration) (time.Duration, error) {
	parts, made := make([]*script.Held, len(records)), ""
	for i, record := range records {
		if h := record.Of(r.Owner); h != nil {
			parts[i], made = h, h.Made
		}
	}
	e := s.encoder()
	nodes := make([]store.NodeOutcome, len(s.nodes))
	var answered quorum.Set
	lasts := newRemainder(len(s.nodes))
	// Until the last node that counts has the request, the lease may still be renewed, and
	// the tombstone of the first one has to outlast that.
	timeout := s.nodeTimeout(s.o.MaxTTL)
	part := func(node int) *script.Command { return e.BreakPart(r, parts[node], made, tombstone+timeout) }
	err := s.askFor(ctx, part, timeout, func(a looked) {
		switch a.Broke() {
		case script.LeaseBroken, script.NothingHeld:
			answered |= quorum.SetOf(a.node)
			lasts.note(a)
			nodes[a.node].Outcome = store.Granted
		case script.LaterToken:
			nodes[a.node] = store.NodeOutcome{Outcome: store.Refused, Err: errPartChanged}
		default:
			nodes[a.node] = a.Changed().Said
		}
	})
	if err != nil {
		return 0, err
	}
	cfg := quorum.Config{Nodes: len(nodes), Sets: s.membership.Sets}
	if !cfg.HasQuorum(answered) {
		return 0, s.notBroken(r.Name, nodes)
	}
	return lasts.of(cfg, nodes), nil
}
