package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/fleet"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/route"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/sentinel"
)

// engine keeps locks on independent servers, or on one.
type engine struct {
	fleet.Fleet
	mostTTL time.Duration                          // the longest that is accepted
	all     func() []*node.Node                    // that calls may be in flight on
	prepare func(ctx context.Context, name string) // connects to the server that has a lock; nil: it need not
	refuse  func(store.Lease) error                // returns why the store refuses a class above its own
	// askLock sends a command to the one server that has a lock, and returns the answer and the
	// server's name.
	askLock func(ctx context.Context, name string, c *script.Command) (script.Reply, string)
}

// newStore returns a Store that has not connected to any node yet.
func newStore(url string, o *Options) (*engine, error) {
	addrs, opts, err := config.Parse(url, o.settings())
	if err != nil {
		return nil, err
	}
	sentinels, addrs := sentinel.New(addrs, opts)
	addrs, lists, err := membership.New(addrs, opts.Next)
	if err != nil {
		return nil, err
	}
	mostTTL := cmp.Or(opts.MaxTTL, config.LongestTTL)
	if opts, err = opts.WithDefaults(); err != nil {
		return nil, err
	}
	s := &engine{mostTTL: mostTTL}
	s.Init(opts)
	s.all = func() []*node.Node { return s.Nodes }
	s.Topology, s.Class, s.Channel = node.Independent{}, store.CrashSafe, script.ChannelBegin+rand.Text()
	s.Driver.Sets, s.Driver.EncodeRenewals = lists.Sets, s.Bundle
	s.askLock = s.askSingle
	s.refuse = func(r store.Lease) error { return r.CheckClass(s.Caps()) }
	if len(addrs) > 1 && node.ClocksWatched {
		s.Driver.Clocks = driver.NewClocks(len(addrs), func(clock.Instant) time.Duration { return s.Quarantine() }, driver.WallAhead(opts.Clock), opts.Logger)
	}
	cfg := quorum.Config{Nodes: len(addrs), Sets: lists.Sets}
	for _, list := range cfg.JointSets() {
		n := list.Size()
		if n%2 != 0 {
			continue
		}
		opts.Logger.Warn("an even number of nodes tolerates no more failures than one node fewer", "nodes", n, "failures", n-quorum.Majority(n))
	}
	if host := config.SharedHost(addrs); host != "" {
		opts.Logger.Info("nodes share a host and fail together", "host", host)
	}
	if sentinels == nil {
		s.MakeNodes(addrs, lists)
		return s, nil
	}
	watch := route.Sentinels{Group: sentinels}
	s.Topology, s.Class = watch, store.Efficiency
	s.refuse = func(r store.Lease) error {
		return fmt.Errorf("%w: lock %q requires %v, but servers watched by sentinels guarantee %v at most", store.ErrUnsupported, r.Name, r.Require, s.Class)
	}
	opts.Logger.Warn("a failover can lose locks: the promoted replica may not know the latest grants", "master", sentinels.Master)
	s.MakeNodes(addrs, lists)
	s.Nodes[0].Go(func() { watch.Follow(s.Nodes[0]) })
	return s, nil
}

// Caps implements driver.Engine.
func (s *engine) Caps() store.Caps {
	c := store.Caps{
		Engine: "redis", Nodes: len(s.Nodes), Quorum: quorum.Majority(len(s.Nodes)),
		MaxTTL: s.mostTTL, Reach: "network", Clock: "each server's own",
		Class: s.Class,
		// A single server hands on the sooner, the less it has to do besides.
		Rejoins:  len(s.Nodes) > 1,
		Notifies: true, EndsCalls: true,
	}
	if len(s.Nodes) > 1 {
		c.MaxPermits = rule.MaxSlots
	}
	return c
}

// Acquire implements driver.Engine.
func (s *engine) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	if err := s.ready(ctx, r.Lease); err != nil {
		return store.Grant{}, err
	}
	if s.prepare != nil {
		s.prepare(ctx, r.Name)
	}
	return s.Driver.Acquire(ctx, r)
}

// Renew implements driver.Engine. It renews all leases at once, and returns when each lease
// has its majority or cannot get it.
func (s *engine) Renew(ctx context.Context, leases []store.Lease) []error {
	errs := make([]error, len(leases))
	for i, r := range leases {
		errs[i] = cmp.Or(s.ready(ctx, r), s.checkSlots(r))
	}
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return s.Driver.Renew(ctx, leases)
	}
	var valid []store.Lease
	for i, r := range leases {
		if errs[i] == nil {
			valid = append(valid, r)
		}
	}
	results := s.Driver.Renew(ctx, valid)
	for i := range errs {
		if errs[i] == nil {
			errs[i], results = results[0], results[1:]
		}
	}
	return errs
}

// checkSlots returns nil if r, which is to be renewed, names its slots. One of several
// servers may have granted the owner other slots, and its renewal must not count.
func (s *engine) checkSlots(r store.Lease) error {
	if len(s.Nodes) <= 1 || r.Kind.IsMutex() || r.Kind.Shared || rule.Spec(r.Kind).Has(rule.SlotsOf(r.Slots...), max(r.Weight, 1)) {
		return nil
	}
	return fmt.Errorf("%w: renew a lease of the %v %q: its slots are %v, and have to be those of the grant", store.ErrInvalid, r.Kind, r.Name, r.Slots)
}

// Release implements driver.Engine.
func (s *engine) Release(ctx context.Context, r store.ReleaseRequest) error {
	return s.Driver.Release(ctx, r)
}

// StartAcquire implements driver.Starter. With one server nothing has to be waited for first.
func (s *engine) StartAcquire(ctx context.Context, r store.AcquireRequest, done func(store.Grant, error)) bool {
	if !s.starts() || r.Require != 0 || s.ready(ctx, r.Lease) != nil {
		return false
	}
	s.Driver.StartAcquire(ctx, r, done)
	return true
}

// StartRelease implements driver.Starter.
func (s *engine) StartRelease(ctx context.Context, r store.ReleaseRequest, done func(error)) bool {
	if !s.starts() {
		return false
	}
	s.Driver.StartRelease(r, done)
	return true
}

func (s *engine) starts() bool { return len(s.Nodes) == 1 && s.prepare == nil }

// Flush implements driver.Starter.
func (s *engine) Flush() { s.Driver.Flush() }

// Wait implements driver.Engine. Each server keeps its own queue of waiters, and hands the
// lock over in the step that releases it. If a server cannot push, because the user lacks
// the permission or a proxy is in between, the client polls.
func (s *engine) Wait(ctx context.Context, r store.WaitRequest, reason func(error)) (store.Grant, error) {
	err := ctx.Err()
	if err == nil {
		err = s.ready(ctx, r.Lease)
	}
	if err != nil {
		s.Driver.Abandon(r.Owner)
		return store.Grant{}, err
	}
	if s.prepare != nil {
		s.prepare(ctx, r.Name)
	}
	s.Waiting.Add(1)
	defer func() {
		s.Waiting.Add(-1)
		s.Progress.Ring()
	}()
	return s.Driver.Wait(ctx, r, reason)
}

// ReleaseAndRejoin implements driver.Engine. Each server does both in one step.
func (s *engine) ReleaseAndRejoin(ctx context.Context, r store.ReleaseRequest, next store.WaitRequest) (queued bool, err error) {
	if err := s.ready(ctx, next.Lease); err != nil {
		return false, err
	}
	if !r.Kind.IsMutex() || !next.Kind.IsMutex() { // nobody need wait for the release
		return false, s.Driver.Release(ctx, r)
	}
	return s.Driver.ReleaseAndRejoin(ctx, r, next)
}

// ready refuses a lease of a class that the servers cannot give. It prepares a single server for the
// class, and several for the TTL.
func (s *engine) ready(ctx context.Context, r store.Lease) error {
	if r.Require > s.Class {
		return s.refuse(r)
	}
	if r.Require >= store.CrashSafe {
		if err := s.Guard(); err != nil {
			return err
		}
	}
	s.NoteTTL(r.TTL)
	if err := s.Take(ctx); err != nil {
		return err
	}
	return s.Raise(ctx, r)
}
