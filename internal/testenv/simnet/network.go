package simnet

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/simredis"
)

// Network has servers that can be dialed. All methods, also those of its hosts, are
// safe for concurrent use.
type Network struct {
	// Delay is how long a message takes one way. If it is zero, a server has replied when the
	// Write returns. It is set before the first Dial.
	Delay time.Duration
	// Late, if set, is how much longer than Delay what a client has just written takes. The
	// order of what it writes on one connection stays the same. It is set before the first
	// Dial.
	Late func() time.Duration
	// Rate, if set, is how many bytes a second a connection carries to its server. The client
	// can write more, which waits. It is set before the first Dial, as is Delay.
	Rate int
	// Clock is the servers' time of day; nil means time.Now. It is set before the first
	// Start.
	Clock func() time.Time

	mu    sync.Mutex
	hosts []*Host
}

// Start adds a server without data.
func (n *Network) Start() *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &Host{n: n, index: len(n.hosts) + 1}
	n.hosts = append(n.hosts, h)
	h.bootLocked(nil)
	return h
}

// StartN adds several servers. Clients trust that they have lost no data.
func (n *Network) StartN(count int) (hosts []*Host) {
	for range count {
		hosts = append(hosts, n.Start())
	}
	if count > 1 {
		for _, h := range hosts {
			h.Declare()
		}
	}
	return hosts
}

// Dial connects to a host by its address. It blocks for two delays, and for as long as
// the host is silent.
func (n *Network) Dial(ctx context.Context, _, addr string) (net.Conn, error) {
	number, _, _ := strings.Cut(strings.TrimPrefix(addr, "n"), ":")
	i, err := strconv.Atoi(number)
	n.mu.Lock()
	known := err == nil && i > 0 && i <= len(n.hosts)
	n.mu.Unlock()
	if !known {
		return nil, &net.AddrError{Err: "no such host", Addr: addr}
	}
	return n.hosts[i-1].dial(ctx)
}

// Host is an address, and the server there.
type Host struct {
	n     *Network
	index int

	// With the network's mutex:
	server  *simredis.Server
	starts  int
	down    bool
	refuses bool
	silent  chan struct{} // closed when the silence ends; nil if there is none
	links   []*link
}

// Addr returns the address that clients dial.
func (h *Host) Addr() string { return fmt.Sprintf("n%d:6379", h.index) }

func (h *Host) bootLocked(data simredis.Data) {
	clock := h.n.Clock
	if clock == nil {
		clock = time.Now
	}
	h.starts++
	h.server = simredis.New(h.runLocked(), clock)
	if data != nil {
		h.server.Load(data)
	}
}

func (h *Host) runLocked() string { return fmt.Sprintf("%036x%04x", h.starts, h.index) }

// Kill stops the server at once. Its connections break, and new ones are refused.
func (h *Host) Kill() {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.down = true
	h.cutLocked()
}

// Restart kills the server and starts another one, with its data or without.
func (h *Host) Restart(keepsData bool) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.cutLocked()
	var data simredis.Data
	if keepsData {
		data = h.server.Data()
	}
	h.bootLocked(data)
	h.down = false
}

// Cut breaks all connections, which clients learn at once.
func (h *Host) Cut() {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.cutLocked()
}

func (h *Host) cutLocked() {
	for _, l := range h.links {
		l.over = true
		l.session.Close()
		l.conn.End(ErrReset)
	}
	h.links = nil
}

// Refuse makes the host refuse new connections, or accept them again.
func (h *Host) Refuse(yes bool) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	h.refuses = yes
}

// Silence makes the host reply to nothing, not even a dial, until Speak. Then it executes the
// requests that have arrived meanwhile.
func (h *Host) Silence() {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if h.silent == nil {
		h.silent = make(chan struct{})
	}
}

// Speak ends a Silence.
func (h *Host) Speak() {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	if h.silent != nil {
		close(h.silent)
		h.silent = nil
		for _, l := range slices.Clone(h.links) { // it removes those that have ended
			l.serveLocked()
		}
	}
}

// Do executes a command on the server and returns its encoded reply.
func (h *Host) Do(words ...string) []byte {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	c := h.server.Connect(func([]byte) {})
	defer c.Close()
	return c.Do(words)
}

// With gives the server to f, which must not keep it.
func (h *Host) With(f func(*simredis.Server)) {
	h.n.mu.Lock()
	defer h.n.mu.Unlock()
	f(h.server)
}

// Value returns the value of a string key, or "" if there is none.
func (h *Host) Value(key string) (value string) {
	h.With(func(s *simredis.Server) { value, _, _ = s.Value(key) })
	return value
}

// Declare makes clients trust that the server, as it runs now, has lost no data.
func (h *Host) Declare() {
	var run string
	h.With(func(*simredis.Server) { run = h.runLocked() })
	h.Do("SET", nodemark.Key, nodemark.Trusted(run, time.Now().UnixMicro()).String())
}

func (h *Host) dial(ctx context.Context) (net.Conn, error) {
	if err := wait(ctx, 2*h.n.Delay); err != nil {
		return nil, err
	}
	for {
		h.n.mu.Lock()
		silent := h.silent
		if silent == nil {
			defer h.n.mu.Unlock()
			return h.connectLocked()
		}
		h.n.mu.Unlock()
		select {
		case <-silent:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (h *Host) connectLocked() (net.Conn, error) {
	if h.down || h.refuses {
		return nil, ErrRefused
	}
	l := &link{h: h}
	l.conn = NewConn(Hooks{Wrote: l.wrote})
	l.session = h.server.Connect(l.says)
	h.links = append(h.links, l)
	return l.conn, nil
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
