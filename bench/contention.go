package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/report"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// contest is one kind of contention and its participants.
type contest struct {
	scenario  string
	kinds     []locks.Kind
	processes []int
	inside    int // goroutines of each process
	rounds    int
	dur       time.Duration
	warm      time.Duration
	kept      bool
	far       time.Duration // the round trip to the servers
	hold      time.Duration // of each turn; 0: that of the flag
}

// Settings of contention that have no flag.
const (
	insiders         = 16                     // goroutines of one process
	onlookers        = 100                    // that wait for a lock that is kept
	keptFor          = locks.TTL / 3          // in which each place is refreshed once
	farAway          = 2 * time.Millisecond   // a round trip
	farAwayProcesses = 16                     // processes far away
	gathering        = 500 * time.Millisecond // until all processes have started
	placeTTL         = 3 * time.Second        // of the waiters behind a frozen one
)

// contests returns the measurements, in order. Kinds that are compared are measured one
// right after the other.
func (s settings) contests(kinds []locks.Kind) []contest {
	shared := filter(kinds, func(k locks.Kind) bool { return oursAlone(k) && k.Engine == locks.Redis || k.Shares() })
	kinds = filter(kinds, func(k locks.Kind) bool { return !k.Shares() })
	within := filter(kinds, func(k locks.Kind) bool { return oursAsItComes(k) || strings.HasPrefix(k.Name, "rueidislock") })
	// The queue by hand cannot do anything else, and a file has no server to ask or to move away.
	locking := filter(kinds, func(k locks.Kind) bool { return k.Role != locks.Floor && k.Engine != locks.File })
	all := []contest{
		{scenario: report.Contended, kinds: kinds, processes: s.processes, inside: 1, rounds: s.rounds, dur: 2 * s.dur, warm: gathering},
		{scenario: report.Inside, kinds: within, processes: []int{1, 2}, inside: insiders, rounds: s.rounds, dur: s.dur, warm: s.warm},
		{scenario: report.Waiting, kinds: locking, processes: []int{1}, inside: onlookers, rounds: 1, dur: keptFor, warm: 4 * gathering, kept: true},
		{scenario: report.Waiting, kinds: locking, processes: []int{onlookers}, inside: 1, rounds: 1, dur: keptFor, warm: 4 * gathering, kept: true},
		{scenario: report.Far, kinds: locking, processes: []int{farAwayProcesses}, inside: 1, rounds: min(s.rounds, 3), dur: 2 * s.dur, warm: gathering, far: farAway},
		{scenario: report.Shared, kinds: shared, processes: []int{2 * locks.Permits}, inside: 1, rounds: s.rounds, dur: 2 * s.dur, warm: gathering, hold: report.SharedHold},
	}
	if s.short {
		for i := range all {
			c := &all[i]
			if c.scenario == report.Shared { // of which there are enough to wait
				c.dur, c.warm, c.processes, c.inside = s.dur, s.warm, []int{2}, locks.Permits
				continue
			}
			c.dur, c.warm, c.inside = s.dur, s.warm, min(c.inside, 4)
			if c.kept && c.inside == 1 || c.far > 0 {
				c.processes = []int{4}
			}
			if c.kept || c.far > 0 {
				c.kinds = filter(c.kinds, oursAlone)
			}
		}
	}
	return slices.DeleteFunc(all, func(c contest) bool { return !s.scenarios[c.scenario] || len(c.kinds) == 0 })
}

func oursAsItComes(k locks.Kind) bool { return k.Role == locks.Ours && !k.Barges }

func oursAlone(k locks.Kind) bool { return oursAsItComes(k) && k.Nodes == 1 }

// contention makes all measurements of contended locks.
func (b *bench) contention(ctx context.Context) error {
	kinds := filter(b.contended, func(k locks.Kind) bool { return b.serves(k.Engine) })
	for _, c := range b.contests(kinds) {
		for round := range c.rounds {
			for _, n := range c.processes {
				for _, k := range c.order(round) {
					if err := b.compete(ctx, c, round, n, k); err != nil {
						return err
					}
				}
			}
		}
	}
	if b.scenarios[report.First] {
		return b.first(ctx, filter(kinds, func(k locks.Kind) bool { return oursAsItComes(k) && !k.Shares() && k.Engine == locks.Redis }))
	}
	return nil
}

// order returns the kinds as they are measured in a round: in every other round backwards. Those
// that are compared stay neighbours, and none of them is always the first on a server that has
// just started: ZooKeeper took 2.2 ms of processor time for a turn of 64 processes then, and 0.5 ms
// a minute later.
func (c contest) order(round int) []locks.Kind {
	kinds := slices.Clone(c.kinds)
	if round%2 == 1 {
		slices.Reverse(kinds)
	}
	return kinds
}

// serves reports whether servers of that engine are up.
func (b *bench) serves(e locks.Engine) bool {
	return e == locks.Redis || e == locks.File || e == locks.Etcd && b.etcd != nil || e == locks.ZooKeeper && b.zoo != nil || e == locks.PostgreSQL && b.postgres != nil
}

// service returns the servers of a kind, emptied; roundTrip makes them look distant.
func (b *bench) service(ctx context.Context, k locks.Kind, roundTrip time.Duration) (s contend.Service, far contend.Far, err error) {
	s.Kind = k
	switch k.Engine {
	case locks.Redis:
		s.Redis = b.redis.Addrs()[:k.Nodes]
		s.Addrs = s.Redis
	case locks.Etcd:
		s.Addrs, s.Other = []string{b.etcd.Addr}, b.etcd
	case locks.ZooKeeper:
		s.Addrs, s.Other = []string{b.zoo.Addr}, b.zoo
	case locks.PostgreSQL:
		s.Addrs, s.Other = []string{b.postgres.Addr}, b.postgres
	case locks.File:
		s.Addrs = []string{b.files}
	}
	if roundTrip > 0 {
		if far, err = contend.MoveAway(s.Addrs, roundTrip); err != nil {
			return s, nil, err
		}
		s.Addrs = far.Addrs()
	}
	if s.Other != nil {
		s.Addrs[0] = s.Other.URL(s.Addrs[0])
	}
	if k.Engine != locks.Redis {
		return s, far, nil
	}
	if err = b.redis[:k.Nodes].EmptyAs(ctx, s.Addrs); err == nil && roundTrip > 0 {
		b.run.RoundTrip, err = contend.RoundTrip(s.Addrs[0])
	}
	if err != nil {
		far.Close()
	}
	return s, far, err
}

// compete measures one implementation in one round.
func (b *bench) compete(ctx context.Context, c contest, round, processes int, k locks.Kind) error {
	service, far, err := b.service(ctx, k, c.far)
	if err != nil {
		return err
	}
	defer far.Close()
	f, err := contend.Contest{
		Service: service, Lock: b.lockName(), Processes: processes, Goroutines: c.inside,
		Hold: cmp.Or(c.hold, b.hold), Warm: c.warm, For: c.dur, Kept: c.kept,
	}.Run(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && b.short && k.Role == locks.Ours:
		return fmt.Errorf("%s, %s: %w", c.scenario, k.Name, err)
	case err != nil: // a failed measurement is a result too
		f = contend.Figures{Processes: processes, Goroutines: c.inside, Window: c.dur, Errors: 1, Failed: err.Error()}
	}
	b.run.Contests = append(b.run.Contests, report.Contest{Scenario: c.scenario, Kind: k.Name, Round: round, Figures: f})
	note := ""
	if f.Errors > 0 {
		note = fmt.Sprintf("  (%d failed: %.60s)", f.Errors, f.Failed)
	}
	if f.Overlaps > 0 {
		note += fmt.Sprintf("  %d OVERLAPS: %s", f.Overlaps, f.Overlap)
	}
	say("%s, round %d of %d, %3d x %3d: %-22s %9s hand-offs/s %9s turns/s%s", c.scenario, round+1, c.rounds, processes, f.Goroutines, k.Name,
		load.Thousands(float64(f.HandOffs)/f.Window.Seconds()), load.Thousands(float64(f.Turns)/f.Window.Seconds()), note)
	return nil
}

// first measures how long the lock is idle if the first waiter is gone.
func (b *bench) first(ctx context.Context, kinds []locks.Kind) error {
	rounds, ttl := b.rounds, placeTTL
	if b.short {
		kinds, ttl = filter(kinds, oursAlone), time.Second
	}
	for round := range rounds {
		for _, k := range kinds {
			for _, fate := range contend.Fates {
				service, _, err := b.service(ctx, k, 0)
				if err != nil {
					return err
				}
				took, err := service.First(ctx, b.lockName(), fate, ttl)
				f := report.FirstInLine{Kind: k.Name, Round: round, Fate: fate, TTL: ttl, Took: took}
				if err != nil {
					if b.short || ctx.Err() != nil {
						return errors.Join(fmt.Errorf("the first in the queue is %s, %s: %w", fate, k.Name, err), ctx.Err())
					}
					f.Failed = err.Error()
				}
				b.run.Firsts = append(b.run.Firsts, f)
				say("the first in the queue is %s, round %d of %d: %s, the next one has the lock after %v %s", fate, round+1, rounds, k.Name, took, f.Failed)
			}
		}
	}
	return nil
}

// lockName returns a new name each time, so that nothing is left over from the last
// measurement.
func (b *bench) lockName() string {
	b.named++
	return fmt.Sprintf("bench-contended-%d", b.named)
}
