package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// NotifyBroken implements driver.Engine. Clients that may not use the channel, or
// whose server does not know version 3 of the protocol, are not notified.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) { return s.broken.Add(f) }

// BreakLease implements driver.Engine. The lease is broken once a majority of the nodes
// refuses to extend or heal it, and each of them frees the lock, or its part of it, when the
// owner releases the lease. Locks of other kinds of clients are refused with store.ErrUnsupported.
func (s *engine) BreakLease(ctx context.Context, r store.BreakRequest) (left time.Duration, err error) {
	state, seen, err := s.inspect(ctx, r.Name)
	if err != nil {
		return 0, err
	}
	h, found := leaseOf(r, state)
	switch {
	case state.Holder.Foreign || h.Holder.Foreign:
		return 0, store.UnbreakableError(r.Name)
	case len(state.Holders) > 0 && len(s.nodes) <= 1: // also of a semaphore that was resized to one permit
		left, err = breakShared(ctx, s.askLock, s.encoder(), r)
	case found && hasPart(r.Owner, seen.records):
		left, err = breakParts(ctx, s, r, seen.records)
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
	e := s.encoder()
	c := e.PublishBreak(r)
	for _, v := range s.voters {
		_ = v.put(call{command: c, timeout: s.o.ConnectTimeout, to: nobody{}}, false) // it is only a hint
	}
}

// leaseOf returns the lease that r is about, which is held or undecided. A token identifies it.
// After a break, so does the note, or an owner that has only one lease.
func leaseOf(r store.BreakRequest, state store.State) (store.Holding, bool) {
	several := len(state.Nodes) > 1
	for _, h := range state.Leases() {
		if h.Holder.Owner == r.Owner && (h.HasToken(r.Token) || several && h.Holder.Broken && (isNoted(r, state) || store.IsNewOwner(r.Owner))) {
			return h, true
		}
	}
	return store.Holding{}, false
}

// isNoted reports whether the lease that was broken last is that of r.
func isNoted(r store.BreakRequest, state store.State) bool {
	return state.Broken != nil && state.Broken.Owner == r.Owner && state.Broken.Token == r.Token
}

// overLease is the result of a break of a lease that is neither held nor undecided.
func overLease(r store.BreakRequest, state store.State) (time.Duration, error) {
	if isNoted(r, state) {
		return 0, nil
	}
	return 0, fmt.Errorf("break the lease of %q: %w with token %v", r.Name, store.ErrNotHeld, r.Token)
}

// breakShared breaks a lease of a lock that several can hold.
func breakShared(ctx context.Context, ask askFunc, e script.Encoder, r store.BreakRequest) (time.Duration, error) {
	did, err := changeHeld(ctx, ask, e.BreakHold(r), "break the lease of", store.Lease{Name: r.Name})
	return did.Left, err
}

// breakWhole breaks h, the lease of a mutex, and tells its holder before anybody else can have
// the lock. A node whose counter was ahead, or that was given the lease back, has it with a larger
// token than others.
func breakWhole(ctx context.Context, s *engine, r store.BreakRequest, h store.Holding, seen views) (time.Duration, error) {
	ttl := s.longestLease() // late requests are refused for as long: a heal asks for no more
	e := s.encoder()
	nodes := make([]store.NodeOutcome, len(s.voters))
	var answered, later quorum.Set
	lasts := newRemainder(len(s.voters))
	meta := "" // of the holder
	timeout := s.nodeTimeout(s.o.MaxTTL)
	// Until the last node has the request, the lease may still be renewed: the tombstone of the
	// first one has to outlast that.
	each := func(node int) *script.Command {
		token := r.Token
		if seen.nodes[node].Holder.Owner == r.Owner {
			token = max(token, seen.tokens[node])
		}
		return e.Break(r, token, ttl+timeout)
	}
	err := s.askFor(ctx, each, timeout, func(a looked) {
		nodes[a.node].Outcome, nodes[a.node].Err = a.Outcome, a.Err
		switch a.Broke() {
		case script.LeaseBroken:
			meta = a.Unbroken()
			lasts.note(a)
			fallthrough
		case script.NothingHeld:
			answered |= quorum.SetOf(a.node)
		case script.LaterToken:
			later |= quorum.SetOf(a.node)
			nodes[a.node].Outcome, nodes[a.node].Err = store.Refused, errPartChanged
		}
	})
	if err != nil {
		return 0, err
	}
	cfg := quorum.Config{Nodes: len(nodes), Sets: s.membership.Sets}
	switch broken, other := breakResult(cfg, answered, later); {
	case other:
		return 0, fmt.Errorf("break the lease of %q: %w with token %v", r.Name, store.ErrNotHeld, r.Token)
	case !broken:
		return 0, s.notBroken(r.Name, nodes)
	}
	publishBreak(s, r)
	if !r.Now {
		return lasts.of(cfg, nodes), nil
	}
	l := store.Lease{Name: r.Name, Owner: r.Owner, Meta: meta, TTL: ttl}
	err = s.driver.Release(ctx, store.ReleaseRequest{Lease: l, Renewed: true})
	if errors.Is(err, store.ErrNotHeld) { // its owner was faster
		err = nil
	}
	return 0, err
}

// breakResult reports whether a lease was broken, or certainly is another one than that which was
// shown: answered are the nodes that broke it or do not have it, and later are those that have it
// with a later token. If neither is a quorum, a majority may have the lease that was shown.
func breakResult(cfg quorum.Config, answered, later quorum.Set) (broken, other bool) {
	broken = cfg.HasQuorum(answered)
	return broken, !broken && cfg.HasQuorum(later)
}

// notBroken is the error if too few nodes broke their part of a lease.
func (s *engine) notBroken(name string, nodes []store.NodeOutcome) error {
	for i, v := range s.voters {
		nodes[i].Node = v.Addr()
	}
	return &store.QuorumError{Op: "break the lease of", Name: name, Need: quorum.Majority(len(nodes)), Nodes: nodes}
}
