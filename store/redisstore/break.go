package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/view"
)

// NotifyBroken implements driver.Engine. Clients that may not use the channel, or
// whose server does not know version 3 of the protocol, are not notified.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) { return s.Broken.Add(f) }

// BreakLease implements driver.Engine. The lease is broken once a majority of the nodes
// refuses to extend or heal it, and each of them frees the lock, or its part of it, when the
// owner releases the lease. Locks of other kinds of clients are refused with store.ErrUnsupported.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	state, seen, err := s.inspect(ctx, r.Name)
	if err != nil {
		return 0, err
	}
	h, found := view.LeaseOf(r, state)
	switch {
	case state.Holder.Foreign || h.Holder.Foreign:
		return 0, store.UnbreakableError(r.Name)
	case len(state.Holders) > 0 && len(s.Nodes) <= 1: // also of a semaphore that was resized to one permit
		left, err = s.breakShared(ctx, r)
	case found && seen.HasPart(r.Owner):
		left, err = breakParts(ctx, s, r, seen.Records)
	case found:
		return breakWhole(ctx, s, r, h, seen)
	default:
		left, err = overLease(r, state)
	}
	if err == nil && (left > 0 || r.Now) {
		publishBreak(s, r)
	}
	return left, err
}

// publishBreak tells the clients that the lease of r was broken. It is called when a majority
// of the nodes refuses to renew the lease. If the scripts published that in the step that
// breaks the lease, the first push would have it renewed on the nodes that come later.
func publishBreak(s *engine, r store.BreakRequest) {
	e := s.Encoder()
	c := e.PublishBreak(r)
	for _, v := range s.Voters {
		_ = v.Enqueue(node.Call{Command: c, Timeout: s.Config.ConnectTimeout, To: node.Nobody{}}, false) // it is only a hint
	}
}

// overLease is the result of a break of a lease that is neither held nor undecided.
func overLease(r store.BreakRequest, state store.State) (time.Duration, error) {
	if view.IsNoted(r, state) {
		return 0, nil
	}
	return 0, fmt.Errorf("break the lease of %q: %w with token %v", r.Name, store.ErrNotHeld, r.Token)
}

// breakShared breaks a lease of a lock that several can hold.
func (s *engine) breakShared(ctx context.Context, r store.BreakRequest) (time.Duration, error) {
	e := s.Encoder()
	did, err := s.changeHeld(ctx, e.BreakHold(r), "break the lease of", store.Lease{Name: r.Name})
	return did.Left, err
}

// breakWhole breaks h, the lease of a mutex, and tells its holder before anybody else can have
// the lock. A node whose counter was ahead, or that was given the lease back, has it with a larger
// token than others.
func breakWhole(ctx context.Context, s *engine, r store.BreakRequest, h store.Holding, seen view.View) (time.Duration, error) {
	ttl := s.LongestLease() // late requests are refused for as long: a heal asks for no more
	e := s.Encoder()
	nodes := make([]store.NodeOutcome, len(s.Voters))
	var answered, later quorum.Set
	lasts := view.NewRemainder(len(s.Voters))
	meta := "" // of the holder
	timeout := s.NodeTimeout(s.Config.MaxTTL)
	// Until the last node has the request, the lease may still be renewed: the tombstone of the
	// first one has to outlast that.
	each := func(node int) *script.Command {
		token := r.Token
		if seen.Nodes[node].Holder.Owner == r.Owner {
			token = max(token, seen.Tokens[node])
		}
		return e.Break(r, token, ttl+timeout)
	}
	err := s.AskFor(ctx, each, timeout, func(a node.Answer) {
		nodes[a.Node].Outcome, nodes[a.Node].Err = a.Outcome, a.Err
		switch a.Broke() {
		case script.LeaseBroken:
			meta = a.Unbroken()
			lasts.Note(a.Node, a.Left())
			fallthrough
		case script.NothingHeld:
			answered |= quorum.SetOf(a.Node)
		case script.LaterToken:
			later |= quorum.SetOf(a.Node)
			nodes[a.Node].Outcome, nodes[a.Node].Err = store.Refused, errPartChanged
		}
	})
	if err != nil {
		return 0, err
	}
	cfg := s.QuorumConfig()
	switch broken, other := view.BreakResult(cfg, answered, later); {
	case other:
		return 0, fmt.Errorf("break the lease of %q: %w with token %v", r.Name, store.ErrNotHeld, r.Token)
	case !broken:
		return 0, s.notBroken(r.Name, nodes)
	}
	publishBreak(s, r)
	if !r.Now {
		return lasts.Of(cfg, nodes), nil
	}
	l := store.Lease{Name: r.Name, Owner: r.Owner, Meta: meta, TTL: ttl}
	err = s.Driver.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true})
	if errors.Is(err, store.ErrNotHeld) { // its owner was faster
		err = nil
	}
	return 0, err
}

// notBroken is the error if too few nodes broke their part of a lease.
func (s *engine) notBroken(name string, nodes []store.NodeOutcome) error {
	for i, v := range s.Voters {
		nodes[i].Node = v.Addr()
	}
	return &store.QuorumError{Op: "break the lease of", Name: name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
}

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
		left, err := breakEach(ctx, s, r, records, s.LongestLease())
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
		if _, found := view.LeaseOf(r, state); !found {
			return overLease(r, state)
		}
		records = seen.Records
	}
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
	e := s.Encoder()
	nodes := make([]store.NodeOutcome, len(s.Nodes))
	var answered quorum.Set
	lasts := view.NewRemainder(len(s.Nodes))
	// Until the last node that counts has the request, the lease may still be renewed, and
	// the tombstone of the first one has to outlast that.
	timeout := s.NodeTimeout(s.Config.MaxTTL)
	part := func(node int) *script.Command { return e.BreakPart(r, parts[node], made, tombstone+timeout) }
	err := s.AskFor(ctx, part, timeout, func(a node.Answer) {
		switch a.Broke() {
		case script.LeaseBroken, script.NothingHeld:
			answered |= quorum.SetOf(a.Node)
			lasts.Note(a.Node, a.Left())
			nodes[a.Node].Outcome = store.Granted
		case script.LaterToken:
			nodes[a.Node] = store.NodeOutcome{Outcome: store.Refused, Err: errPartChanged}
		default:
			nodes[a.Node] = a.Changed().Said
		}
	})
	if err != nil {
		return 0, err
	}
	cfg := s.QuorumConfig()
	if !cfg.HasQuorum(answered) {
		return 0, s.notBroken(r.Name, nodes)
	}
	return lasts.Of(cfg, nodes), nil
}
