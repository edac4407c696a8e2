package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/sentinel"
)

// Scope limits an examination.
type Scope struct {
	// TTL is the TTL of the locks. It determines how long a client waits for a node.
	TTL time.Duration
	// Prefix is what the names of the locks begin with. Only keys of such locks are
	// examined, and permissions are tried on such names. Empty means all names.
	Prefix string
	// MaxLocks bounds the locks that are examined on each server. Zero means 10000.
	MaxLocks int

	// serves reports whether a member of a cluster has a slot; nil if there is no
	// cluster.
	serves func(slot int) bool
}

// withDefaults fills in the defaults and validates the scope.
func (s Scope) withDefaults() (Scope, error) {
	if s.TTL < store.MinTTL {
		return s, fmt.Errorf("%w: TTL %v is too short: the least is %v", store.ErrInvalid, s.TTL, store.MinTTL)
	}
	s.MaxLocks = cmp.Or(s.MaxLocks, defaultMaxLocks)
	return s, nil
}

const (
	defaultMaxLocks = 10000
	surveyTime      = 5 * time.Second // on each server
	tripsTimed      = 9
)

// Examine reports on the servers that urls name. It connects as Open does, with the same
// user, TLS and settings, and also works where Open fails: a server that is down is part
// of the report.
//
// Examine blocks until each server has answered or timed out, which takes some seconds.
// It is safe for concurrent use and can be called again. It changes no lock: its trials
// use a lock name that no other client uses, and it removes their traces. It fails only
// if the URLs or the options are wrong, or if ctx ends.
func Examine(ctx context.Context, urls []string, o *Options, scope Scope) (Examination, error) {
	return examine(ctx, urls, o, scope, time.Now)
}

func examine(ctx context.Context, urls []string, o *Options, scope Scope, wall func() time.Time) (Examination, error) {
	addrs, opts, err := config.Parse(urls, o.settings())
	if err != nil {
		return Examination{}, err
	}
	sentinels, addrs := sentinel.New(addrs, opts)
	addrs, lists, err := membership.New(addrs, opts.Next)
	if err != nil {
		return Examination{}, err
	}
	if opts, err = opts.WithDefaults(); err != nil {
		return Examination{}, err
	}
	if scope, err = scope.withDefaults(); err != nil {
		return Examination{}, err
	}
	return examineAll(ctx, addrs, sentinels, lists, opts, scope, wall), ctx.Err()
}

// examineAll examines the servers as nodes of one store, and the sentinels that watch
// them, if any.
func examineAll(ctx context.Context, addrs []config.Address, watch *sentinel.Group, lists membership.List, opts config.Config, scope Scope, wall func() time.Time) Examination {
	e := Examination{
		Nodes: make([]Examined, len(addrs)), Memberships: lists.Indexes(len(addrs)),
		TTL: scope.TTL, MaxTTL: opts.MaxTTL, NodeTimeout: opts.TimeoutFor(scope.TTL),
		Quarantine: opts.Quarantine(), FsyncAlways: opts.FsyncAlways,
	}
	s := &Store{o: opts, membership: lists, sentinels: watch, wall: wall, nodes: make([]*node, len(addrs)), channel: script.ChannelBegin + rand.Text()} // never opened
	s.guarded.Store(len(addrs) > 1)
	for i, a := range addrs {
		s.nodes[i] = &node{s: s, index: i, addr: a, log: opts.Logger, ctx: ctx}
	}
	var all sync.WaitGroup
	for i, n := range s.nodes {
		all.Go(func() { e.Nodes[i] = n.examine(ctx, scope) })
	}
	if watch != nil {
		all.Go(func() { e.Sentinels = s.nodes[0].examineSentinels(ctx) })
	}
	all.Wait()
	return e
}

// examiner sends one command after the other to a node, over a connection of its own.
type examiner struct {
	n     *node
	w     *conn.Line
	scope Scope
	found Examined
}

func (n *node) examine(ctx context.Context, scope Scope) Examined {
	d := &examiner{n: n, scope: scope}
	err := d.visit(ctx)
	d.found.Node = n.Addr()
	if err != nil {
		outcome, err := membership.Classify(err, n.s.o.ConnectTimeout)
		return Examined{Node: d.found.Node, Host: d.found.Host, Outcome: outcome, Err: err}
	}
	d.found.Outcome = store.Granted
	return d.found
}

// visit runs all examinations of a node. It stops at the first command without an answer.
func (d *examiner) visit(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, d.n.s.o.ConnectTimeout)
	defer cancel()
	hosts, err := d.n.masterAddrs(dialing)
	if err != nil {
		return err
	}
	at := d.n.addr
	at.Host = hosts[0]
	if d.w, err = conn.Open(dialing, at, &d.n.s.o); err != nil {
		return err
	}
	defer d.w.Conn.Close()
	defer context.AfterFunc(ctx, func() { d.w.Conn.Close() })()
	d.found.Host, _, _ = net.SplitHostPort(d.w.Conn.RemoteAddr().String())
	if err := d.login(dialing); err != nil {
		return err
	}
	for _, step := range []func() error{d.timing, d.server, d.mark, d.survey, d.rights, d.scripts} {
		if err := step(); err != nil {
			return err
		}
	}
	return d.listening(ctx)
}

// ask sends commands together and waits for all their answers.
func (d *examiner) ask(commands ...[]byte) ([]resp.Value, error) {
	d.w.Conn.SetDeadline(time.Now().Add(d.n.s.o.ConnectTimeout))
	return d.w.Exchange(commands...)
}

// askFor sends one command and waits for its answer.
func (d *examiner) askFor(words ...string) (resp.Value, error) {
	said, err := d.ask(resp.Command(words...))
	if err != nil {
		return resp.Value{}, err
	}
	return said[0], nil
}

func (d *examiner) login(ctx context.Context) error {
	commands, err := d.n.s.o.Login(ctx, d.n.addr)
	if err != nil {
		return err
	}
	// The handshake without a password succeeds; the first other command is refused.
	said, err := d.ask(append(commands, resp.Command("GET", d.probeName()))...)
	if err != nil {
		return err
	}
	for i, v := range said {
		if v.Kind == '-' && (i < len(commands) || v.Code() == resp.NoAuth) {
			return resp.ErrorOf(v)
		}
	}
	return nil
}

// timing measures some round trips, and compares the clocks in the fastest.
func (d *examiner) timing() error {
	trips := make([]time.Duration, tripsTimed)
	for i := range trips {
		before := d.n.s.wall()
		start := d.n.s.o.Clock.Now()
		v, err := d.askFor("TIME")
		if err != nil {
			return err
		}
		trips[i] = d.n.s.o.Clock.Now().Sub(start)
		if there, ok := readTime(v); ok && (d.found.AheadError == 0 || trips[i]/2 < d.found.AheadError) {
			d.found.AheadError = max(trips[i]/2, 1)
			d.found.Ahead = there.Sub(before.Add(trips[i] / 2))
		}
	}
	slices.Sort(trips)
	d.found.Trip, d.found.Slowest = trips[len(trips)/2], trips[len(trips)-1]
	return nil
}

func readTime(v resp.Value) (time.Time, bool) {
	if len(v.List) != 2 {
		return time.Time{}, false
	}
	seconds, ok := v.List[0].Number()
	micros, also := v.List[1].Number()
	return time.UnixMicro(int64(seconds)*1e6 + int64(micros)), ok && also
}

// probe returns a lock name that is not in use. In a cluster, its slot is on this server.
func (d *examiner) probe() string {
	for {
		name := d.probeName() + "/" + store.NewOwner()
		if d.scope.serves == nil {
			return name
		} else if name = cluster.KeyOf(name); d.scope.serves(cluster.SlotOf(name)) {
			return name
		}
	}
}

// probeName is the base of the lock name that trials use.
func (d *examiner) probeName() string { return d.scope.Prefix + "leasehold-doctor" }
