package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// order is what a client is told to do, as a line of JSON.
type order struct {
	Do      string        `json:"do"`
	Addr    string        `json:"addr,omitempty"`    // of plain, draw: the server; of write: the resource
	Args    []string      `json:"args,omitempty"`    // of plain
	Store   string        `json:"store,omitempty"`   // of open, native
	Ahead   time.Duration `json:"ahead,omitempty"`   // of open: how fast the client's clock is
	Far     string        `json:"far,omitempty"`     // of open: a server that the client reaches only through Via
	Via     string        `json:"via,omitempty"`     // of open: the network in front of Far
	Lock    string        `json:"lock,omitempty"`    // of acquire, native; of draw, empty: without
	TTL     time.Duration `json:"ttl,omitempty"`     // of acquire, native, draw
	Wait    time.Duration `json:"wait,omitempty"`    // of acquire; zero: one attempt
	NoRenew bool          `json:"noRenew,omitempty"` // of acquire
	Require store.Class   `json:"require,omitempty"` // of acquire
	Value   string        `json:"value,omitempty"`   // of write
	Token   fence.Token   `json:"token,omitempty"`   // of write
	For     time.Duration `json:"for,omitempty"`     // of draw
}

// The orders that a client executes.
const (
	plain   = "plain"   // send a plain Redis command
	open    = "open"    // open a store
	acquire = "acquire" // ask it for the lock
	holds   = "holds"   // look whether the lease can be trusted
	release = "release" // release it
	write   = "write"   // write to the resource
	draw    = "draw"    // draw IDs
	native  = "native"  // wait for the lock with the engine's own client, for which store is
)

// report is what became of an order.
type report struct {
	Err      string        `json:"err,omitempty"`
	Busy     bool          `json:"busy,omitempty"` // the error was that somebody else has the lock
	Reply    string        `json:"reply,omitempty"`
	Took     time.Duration `json:"took,omitempty"` // by the client's own clock
	Token    fence.Token   `json:"token,omitempty"`
	Accepted bool          `json:"accepted,omitempty"`
	IDs      []string      `json:"ids,omitempty"`
}

// Act is a client process: it does what in says until in ends, and reports to
// out. It returns what kept it from that.
func Act(in io.Reader, out io.Writer) error {
	p := &player{ctx: context.Background()}
	defer p.leave()
	orders, reports := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf(`this is started by "lab run" only, which says on standard input what to do: %w`, err)
		}
		began := time.Now()
		r, err := p.do(o)
		r.Took = time.Since(began)
		if err != nil {
			r.Err, r.Busy = words(err), errors.Is(err, leasehold.ErrBusy)
		}
		if err := reports.Encode(r); err != nil {
			return err
		}
	}
}

// words is what a client says of an error: why a lease was lost, without what
// each node said.
func words(err error) string {
	var lost *leasehold.LostError
	if errors.As(err, &lost) {
		return "the lease is lost: " + lost.Reason
	}
	return err.Error()
}

// player is the client process's side of an actor.
type player struct {
	ctx    context.Context
	store  *store.Store
	client *leasehold.Client
	lease  *leasehold.Lease
	end    func() // ends the engine's own client, if not nil
}

func (p *player) leave() {
	if p.end != nil {
		p.end()
	}
	if p.store != nil {
		p.store.Close()
	}
}

func (p *player) do(o order) (report, error) {
	switch o.Do {
	case plain:
		v, err := localredis.Do(p.ctx, o.Addr, o.Args...)
		return report{Reply: localredis.Text(v)}, err
	case open:
		return report{}, p.open(o)
	case acquire:
		return p.acquire(o)
	case holds:
		if p.lease == nil {
			return report{}, errors.New("it has no lease")
		}
		return report{}, p.lease.Err()
	case release:
		return report{}, p.lease.Release(p.ctx)
	case write:
		return writeTo(p.ctx, o)
	case draw:
		return p.draw(o)
	case native:
		return report{}, p.native(o)
	}
	return report{}, fmt.Errorf("%q is not in this play", o.Do)
}

func (p *player) open(o order) (err error) {
	if store.Scheme(o.Store) != "redis" {
		if p.store, err = store.Open(p.ctx, o.Store, nil); err == nil {
			p.client = leasehold.New(p.store, nil)
		}
		return err
	}
	c := clock.Func(func() clock.Instant { return clock.System().Now().Add(o.Ahead) })
	if p.store, err = redisstore.Open(p.ctx, o.Store, &redisstore.Options{Clock: c, Dial: o.dial}); err == nil {
		p.client = leasehold.New(p.store, &leasehold.Options{Clock: c})
	}
	return err
}

// dial connects a client with a server.
func (o order) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == o.Far {
		addr = o.Via
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// acquire waits longer than a client does by itself for a store that may have
// forgotten its locks and therefore grants none for a while.
func (p *player) acquire(o order) (report, error) {
	l := p.client.Mutex(o.Lock).With(leasehold.LockOptions{TTL: o.TTL, NoRenew: o.NoRenew, Require: o.Require})
	if o.Wait == 0 {
		return p.granted(l.Try(p.ctx))
	}
	ctx, cancel := context.WithTimeout(p.ctx, o.Wait)
	defer cancel()
	for {
		r, err := p.granted(l.Acquire(ctx))
		var q *leasehold.QuorumError
		if ctx.Err() != nil || !errors.As(err, &q) || q.Count(store.Quarantined) == 0 {
			return r, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (p *player) granted(l *leasehold.Lease, err error) (report, error) {
	if err != nil {
		return report{}, err
	}
	p.lease = l
	return report{Token: l.Token()}, nil
}

// writeTo writes to the resource, over a connection of its own.
func writeTo(ctx context.Context, o order) (report, error) {
	q := url.Values{"value": {o.Value}, "token": {o.Token.String()}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.Addr+"?"+q.Encode(), nil)
	if err != nil {
		return report{}, err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return report{}, err
	}
	resp.Body.Close()
	return report{Accepted: resp.StatusCode == http.StatusOK}, nil
}
