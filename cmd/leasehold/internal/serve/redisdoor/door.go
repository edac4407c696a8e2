package redisdoor

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
)

// Options configure a Door. Store is needed.
type Options struct {
	// Store keeps the locks.
	Store *store.Store
	// Log receives the audit. Nil: nothing is logged.
	Log *slog.Logger
	// Rights says what clients may do. Nil: all may do everything, or only look if ReadOnly is
	// set.
	Rights   *rights.File
	ReadOnly bool
	// Allow reports whether a client at an address may send a command now. The client is nil if
	// it has not said who it is. Nil: it may.
	Allow func(c *rights.Client, address string) bool
	// Patience is how long a client may take to read what was written, or to say who it is.
	// Zero: 10 seconds.
	Patience time.Duration
	// Connections is how many there can be at a time. Zero: 10,000.
	Connections int
}

// Door answers the commands of lock clients of Redis. It is safe for concurrent use.
type Door struct {
	Options
	anyone  *rights.Client
	locks   locks
	scripts scripts

	mu     sync.Mutex
	conns  map[*conn]bool // true: it is served; false: it is being refused
	served int
	warned time.Time // when the log last said that connections are refused
	last   int64
	leaves bool
	ended  sync.WaitGroup

	atOnce bool // the store is in this process: it has nothing to wait for
}

// New returns a door to o.Store. It sends nothing to the store.
func New(o Options) *Door {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Allow == nil {
		o.Allow = func(*rights.Client, string) bool { return true }
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Connections == 0 {
		o.Connections = 10_000
	}
	return &Door{Options: o, anyone: rights.Anyone(o.ReadOnly), locks: locks{store: o.Store, now: time.Now}, conns: map[*conn]bool{}, atOnce: o.Store.Caps().Reach == "process"}
}

// Serve answers commands at l until ctx ends. Then it answers what it has begun for as long as
// drain, closes all connections, and returns nil. Leases stay in the store.
func (d *Door) Serve(ctx context.Context, l net.Listener, drain time.Duration) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	base, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := d.accept(base, l)
	l.Close()
	d.leave()
	late := time.AfterFunc(drain, func() {
		cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		for c := range d.conns {
			c.nc.Close()
		}
	})
	d.ended.Wait()
	late.Stop()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// accept begins connections until the listener is closed.
func (d *Door) accept(ctx context.Context, l net.Listener) error {
	for {
		nc, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			d.Log.Warn("a connection could not be accepted", "error", err) // such as too many open files
			time.Sleep(50 * time.Millisecond)
			continue
		}
		c := &conn{d: d, nc: nc, host: nc.RemoteAddr().String()}
		if host, _, err := net.SplitHostPort(c.host); err == nil {
			c.host = host
		}
		c.in = bufio.NewReaderSize(c, mostRead)
		c.moved.L = &c.mu
		c.base = ctx
		c.ctx, c.end = context.WithCancel(ctx)
		serve, ok := d.add(c)
		if !ok {
			c.end()
			nc.Close()
			continue
		}
		go func() {
			defer d.remove(c)
			if serve {
				c.serve()
			} else {
				c.refuse("ERR max number of clients reached: " + what + ", for " + strconv.Itoa(d.Connections) + " connections at a time (--redis-clients)")
			}
		}()
	}
}

// mostRefused is how many connections are told at a time why they are refused. More are closed.
const mostRefused = 100

// add adds a connection, which is to be served or refused. It returns ok false if the connection
// is to be closed.
func (d *Door) add(c *conn) (serve, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	serve = d.served < d.Connections
	if now := time.Now(); !serve && now.Sub(d.warned) > time.Minute {
		d.warned = now
		d.Log.Warn("connections of lock clients of Redis are refused: there are as many as --redis-clients allows", "connections", d.Connections)
	}
	if d.leaves || !serve && len(d.conns)-d.served >= mostRefused {
		return serve, false
	}
	if serve {
		d.served++
	}
	d.last++
	c.session = session{id: d.last, version: 2}
	d.conns[c] = serve
	d.ended.Add(1)
	return serve, true
}

func (d *Door) remove(c *conn) {
	d.mu.Lock()
	if d.conns[c] {
		d.served--
	}
	delete(d.conns, c)
	d.mu.Unlock()
	d.ended.Done()
}

// bound gives a connection whose client is not known a time to say who it is, once.
func (d *Door) bound(c *conn) {
	known := d.client(c) != nil
	if known != c.bounded {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.leaves {
		return
	}
	until := time.Now().Add(d.Patience)
	if c.bounded = !known; known {
		until = time.Time{}
	}
	c.nc.SetReadDeadline(until)
}

// leave has all connections take no more commands.
func (d *Door) leave() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.leaves = true
	for c := range d.conns {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

// client returns who sends the commands of c, or nil if that is not known.
func (d *Door) client(c *conn) *rights.Client {
	if d.Rights == nil {
		return d.anyone
	}
	var client *rights.Client
	if c.session.token != "" {
		client = d.Rights.ByToken(c.session.token)
	} else if t, ok := c.nc.(*tls.Conn); ok {
		state := t.ConnectionState()
		client = d.Rights.ByCertificate(&state)
	}
	if client != nil && d.ReadOnly {
		client = client.ReadOnly()
	}
	return client
}
