package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/report"
	"github.com/leasehold-dev/leasehold/bench/servers"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
)

// bench is a run under way.
type bench struct {
	settings
	kinds      []locks.Kind
	contended  []locks.Kind
	redis      servers.Redis
	etcd       *servers.Server
	zoo        *servers.Server
	postgres   *servers.Server
	files      string // the directory of locks in files, and of the program
	benchmarks string // the program with Leasehold's Go benchmarks, if any of them is needed
	run        *report.Run
	named      int // locks so far
}

// redisServers is the number of servers to start: the most that any implementation
// uses.
const redisServers = 5

// measureAll starts the servers and makes all measurements that the settings select.
func measureAll(ctx context.Context, s settings) (*report.Run, error) {
	b := &bench{settings: s, run: &report.Run{
		Machine: report.ThisMachine(), Started: time.Now().UTC().Truncate(time.Second), Rounds: s.rounds, For: s.dur, Hold: s.hold,
		Spinning: s.spin, Short: s.short, LoadOff: report.LoadAverage(),
	}}
	wanted := func(k locks.Kind) bool { return s.only.MatchString(k.Name) }
	if s.any(aloneScenarios) {
		b.kinds = filter(locks.All, wanted)
	}
	if s.any(contentionScenarios) {
		b.contended = filter(locks.Contended, wanted)
	}
	if len(b.kinds)+len(b.contended) == 0 {
		return nil, fmt.Errorf("no implementation has a name that matches %q", s.only)
	}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	if s.spin {
		spinners, err := servers.StartSpinners()
		if err != nil {
			return nil, err
		}
		defer spinners.Stop()
	}
	for _, k := range filter(b.kinds, func(k locks.Kind) bool { return k.Open != nil }) {
		if err := b.check(ctx, k); err != nil {
			return nil, err
		}
	}
	if len(b.kinds) > 0 {
		say("every implementation that has clients excludes")
	}
	for _, st := range b.plan(b.kinds) {
		if err := b.step(ctx, st); err != nil {
			return nil, err
		}
	}
	if s.scenarios[heldScenario] {
		if err := b.held(ctx); err != nil {
			return nil, err
		}
	}
	if err := b.contention(ctx); err != nil {
		return nil, err
	}
	b.run.Took = time.Since(b.run.Started).Round(time.Second)
	return b.run, nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// start starts the servers that are needed. A short run leaves out servers that are not
// installed, and says so.
func (b *bench) start(ctx context.Context) (err error) {
	all := slices.Concat(b.kinds, b.contended)
	b.run.Versions = moduleVersions(all)
	if b.files, err = os.MkdirTemp("", "leasehold-bench-"); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(k locks.Kind) bool { return k.Benchmark != "" }) {
		if err := b.buildBenchmarks(ctx); err != nil {
			return err
		}
	}
	if b.redis, err = servers.StartRedis(redisServers); err != nil {
		return err
	}
	if b.run.Versions["redis-server"], err = b.redis.Version(); err != nil {
		return err
	}
	for _, other := range []struct {
		engine locks.Engine
		at     **servers.Server
		start  func(context.Context) (*servers.Server, error)
	}{{locks.Etcd, &b.etcd, servers.StartEtcd}, {locks.ZooKeeper, &b.zoo, servers.StartZooKeeper}, {locks.PostgreSQL, &b.postgres, servers.StartPostgreSQL}} {
		if len(filter(all, func(k locks.Kind) bool { return k.Engine == other.engine })) == 0 {
			continue
		}
		server, err := other.start(ctx)
		var missing *servers.MissingError
		switch {
		case b.short && errors.As(err, &missing):
			say("LEFT OUT: %v", err)
			b.kinds = filter(b.kinds, func(k locks.Kind) bool { return k.Engine != other.engine })
			continue
		case err != nil:
			return err
		}
		*other.at = server
		b.run.Versions[string(other.engine)+" (server)"] = server.Version
	}
	return nil
}

func (b *bench) stop() {
	b.redis.Close()
	os.RemoveAll(b.files)
	for _, s := range []*servers.Server{b.etcd, b.zoo, b.postgres} {
		if s != nil {
			s.Close()
		}
	}
}

// spec returns what a cell needs to know about the servers.
func (b *bench) spec(do string, k locks.Kind) cell.Spec {
	s := cell.Spec{Do: do, Kind: k.Name, Goroutines: b.goroutines, Warm: b.warm, For: b.dur, TTL: locks.TTL}
	switch k.Engine {
	case locks.Redis:
		s.Addrs = b.redis.Addrs()[:k.Nodes]
		s.Probe = s.Addrs
	case locks.Etcd:
		s.Addrs, s.PID = []string{b.etcd.Addr}, b.etcd.PID
	case locks.ZooKeeper:
		s.Addrs, s.PID = []string{b.zoo.Addr}, b.zoo.PID
	case locks.PostgreSQL:
		s.Addrs, s.PID = []string{b.postgres.URL(b.postgres.Addr)}, b.postgres.PID
	}
	return s
}

// serving returns the servers that a kind uses. A server of Leasehold remembers which others
// belong to it, so exactly these are emptied before the next kind.
func (b *bench) serving(k locks.Kind) servers.Redis {
	if k.Engine != locks.Redis {
		return b.redis
	}
	return b.redis[:k.Nodes]
}

// check makes sure that an implementation excludes before it is measured.
func (b *bench) check(ctx context.Context, k locks.Kind) error {
	if err := b.serving(k).Empty(ctx); err != nil {
		return err
	}
	p, err := spawn(ctx, b.spec(cell.Check, k))
	if err != nil {
		return err
	}
	o, err := p.finish()
	if err == nil && o.Error != "" {
		err = errors.New(o.Error)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	return nil
}

// step makes all rounds of a scenario. In each round every implementation has a turn,
// so that a disturbance of the machine affects them all. Measurements that are
// compared, those with the same number of goroutines, follow each other directly.
func (b *bench) step(ctx context.Context, st step) error {
	if st.awake && !b.spin {
		spinners, err := servers.StartSpinners()
		if err != nil {
			return err
		}
		defer spinners.Stop()
	}
	for round := range st.rounds {
		for _, n := range st.goroutines {
			for _, k := range st.kinds {
				if err := b.turn(ctx, st, round, n, k); err != nil {
					return err
				}
				if st.beside != nil && has(st.beside.kinds, k.Name) {
					if err := b.turn(ctx, *st.beside, round, n, k); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// turn measures one implementation in one round.
func (b *bench) turn(ctx context.Context, st step, round, goroutines int, k locks.Kind) error {
	used := b.serving(k)
	if st.servers > 0 {
		used = used[:st.servers]
	}
	if err := used.Empty(ctx); err != nil {
		return err
	}
	s := b.spec(cell.Measure, k)
	s.Goroutines = []int{goroutines}
	if st.servers > 0 {
		s.Addrs = s.Addrs[:st.servers]
	}
	if k.Benchmark != "" {
		o, err := b.runBenchmark(ctx, k, s)
		if err != nil {
			return err
		}
		b.note(st, round, k, s, o)
		return nil
	}
	s.Probe = nil
	if k.Engine == locks.Redis {
		s.Probe = s.Addrs[:len(s.Addrs)-st.faults.down()]
	}
	if st.faults == freezeOne {
		s.For *= 3 // some make an operation in seconds only
	}
	p, err := spawn(ctx, s)
	if err != nil {
		return err
	}
	mended, err := b.befall(st.faults)
	if err != nil {
		p.end()
		return err
	}
	o, err := p.finish()
	if failed := mended(); failed != nil {
		return errors.Join(err, failed)
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		if ctx.Err() != nil || st.strict {
			return fmt.Errorf("%s: %w", k.Name, err)
		}
		o.Error = err.Error()
	}
	if o.Error != "" && st.strict {
		return fmt.Errorf("%s, %s: %s", st.scenario, k.Name, o.Error)
	}
	b.note(st, round, k, s, o)
	return nil
}

// note stores and prints a result. A cell without figures is a result too: no operation
// ended within the time.
func (b *bench) note(st step, round int, k locks.Kind, s cell.Spec, o cell.Outcome) {
	for _, n := range s.Goroutines[len(o.Figures):] {
		o.Figures = append(o.Figures, cell.Figures{Goroutines: n, Elapsed: s.For, Errors: 1, FirstError: o.Error})
	}
	for _, f := range o.Figures {
		b.run.Cells = append(b.run.Cells, report.Cell{Scenario: st.scenario, Kind: k.Name, Round: round, Figures: f})
		failed := ""
		if f.Errors > 0 {
			failed = fmt.Sprintf("  (%d failed: %.60s)", f.Errors, f.FirstError)
		}
		say("%s, round %d of %d, %3d: %-28s %9s/s%s", st.scenario, round+1, st.rounds, f.Goroutines, k.Name,
			load.Thousands(f.PerSecond), failed)
	}
}

// held measures the cost of leases that are only held. It takes at least one renewal of
// each.
func (b *bench) held(ctx context.Context) error {
	for _, k := range filter(b.kinds, func(k locks.Kind) bool { return k.Role == locks.Ours && !k.Shares() && k.Engine == locks.Redis }) {
		if err := b.serving(k).Empty(ctx); err != nil {
			return err
		}
		s := b.spec(cell.Held, k)
		s.Leases, s.For = b.leases, s.TTL
		if b.short {
			s.TTL, s.For = 3*time.Second, 2*time.Second
		}
		p, err := spawn(ctx, s)
		if err != nil {
			return err
		}
		o, err := p.finish()
		if err == nil && o.Error != "" {
			err = errors.New(o.Error)
		}
		if err != nil {
			return fmt.Errorf("%s leases of %s: %w", load.Thousands(float64(b.leases)), k.Name, err)
		}
		b.run.Held = append(b.run.Held, report.Held{Kind: k.Name, HeldFigures: *o.Held})
		say("held by %s: %d leases", k.Name, o.Held.Leases)
	}
	return nil
}
