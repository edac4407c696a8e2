package redisadmin

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
	"github.com/leasehold-dev/leasehold/store/redisstore"
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
		return s, fmt.Errorf("%w: TTL %v is too short: the minimum is %v", store.ErrInvalid, s.TTL, store.MinTTL)
	}
	s.MaxLocks = cmp.Or(s.MaxLocks, defaultMaxLocks)
	return s, nil
}

const (
	defaultMaxLocks = 10000
	surveyTime      = 5 * time.Second // on each server
	tripsTimed      = 9
)

// Examine reports on the servers that url names. It connects as Open does, with the same
// user, TLS and settings, and also works where Open fails: a server that is down is part
// of the report.
//
// Examine blocks until each server has answered or timed out, which takes some seconds.
// It is safe for concurrent use and can be called again. It changes no lock: its trials
// use a lock name that no other client uses, and it removes their traces. It fails only
// if url or o is wrong, with store.ErrInvalid, or if ctx ends.
func Examine(ctx context.Context, url string, o *redisstore.Options, scope Scope) (Examination, error) {
	return examine(ctx, url, o, scope, time.Now)
}

func examine(ctx context.Context, url string, o *redisstore.Options, scope Scope, wall func() time.Time) (Examination, error) {
	addrs, opts, err := config.Parse(url, settingsOf(o))
	if err != nil {
		return Examination{}, err
	}
	sentinels, addrs := sentinel.New(addrs, opts)
	addrs, lists, err := membership.New(addrs, opts.Next)
	if err != nil {
		return Examination{}, err
	}
	mostTTL := opts.MaxTTL
	if opts, err = opts.WithDefaults(); err != nil {
		return Examination{}, err
	}
	if scope, err = scope.withDefaults(); err != nil {
		return Examination{}, err
	}
	e := examineAll(ctx, addrs, sentinels, lists, opts, scope, wall)
	e.Limited = mostTTL > 0
	return e, ctx.Err()
}

// examineAll examines the servers as nodes of one store, and the sentinels that watch
// them, if any.
func examineAll(ctx context.Context, addrs []config.Address, watch *sentinel.Group, lists membership.List, opts config.Config, scope Scope, wall func() time.Time) Examination {
	e := Examination{
		Nodes: make([]Examined, len(addrs)), Memberships: lists.Indexes(len(addrs)),
		TTL: scope.TTL, MaxTTL: opts.MaxTTL, NodeTimeout: opts.TimeoutFor(scope.TTL, len(addrs)),
		Quarantine: opts.Quarantine(), FsyncAlways: opts.FsyncAlways,
	}
	x := &examination{o: opts, membership: lists, sentinels: watch, wall: wall, scope: scope, single: len(addrs) == 1, channel: script.ChannelBegin + rand.Text()}
	var all sync.WaitGroup
	for i, a := range addrs {
		all.Go(func() { e.Nodes[i] = x.examine(ctx, a) })
	}
	if watch != nil {
		all.Go(func() { e.Sentinels = x.examineSentinels(ctx) })
	}
	all.Wait()
	return e
}

// examination is what all servers are examined for.
type examination struct {
	o          config.Config
	membership membership.List
	sentinels  *sentinel.Group  // nil: there are none
	wall       func() time.Time // time of day
	channel    string           // on which the trials publish
	single     bool             // there is one server only
	scope      Scope
}

// examiner sends one command after the other to a server, over a connection of its own.
type examiner struct {
	*examination
	addr  config.Address
	w     *conn.Connection
	found Examined
}

// examine examines the server at a, or the master that the sentinels name.
func (x *examination) examine(ctx context.Context, a config.Address) Examined {
	d := &examiner{examination: x, addr: a}
	err := d.visit(ctx)
	if d.found.Node = a.Host; x.sentinels != nil {
		d.found.Node = x.sentinels.Name()
	}
	if err != nil {
		outcome, err := membership.Classify(err, x.o.ConnectTimeout)
		return Examined{Node: d.found.Node, Host: d.found.Host, Outcome: outcome, Err: err}
	}
	d.found.Outcome = store.Granted
	return d.found
}

// visit runs all examinations of a node. It stops at the first command without an answer.
func (d *examiner) visit(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, d.o.ConnectTimeout)
	defer cancel()
	if d.sentinels != nil {
		hosts, err := d.sentinels.Find(dialing, &d.o)
		if err != nil {
			return err
		}
		d.addr.Host = hosts[0]
	}
	var err error
	if d.w, err = conn.Open(dialing, d.addr, &d.o); err != nil {
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
	d.w.Conn.SetDeadline(time.Now().Add(d.o.ConnectTimeout))
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
	commands, err := d.o.Login(ctx, d.addr)
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
		before := d.wall()
		start := d.o.Clock.Now()
		v, err := d.askFor("TIME")
		if err != nil {
			return err
		}
		trips[i] = d.o.Clock.Now().Sub(start)
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
