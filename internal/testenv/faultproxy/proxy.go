// Package faultproxy is a TCP proxy in front of one server that misbehaves on demand. It
// swallows, delays, holds and cuts what passes, also in the middle of a reply. It is for tests,
// and for the stories that show what a network does to locks.
//
// The mode can be changed at any time; it then applies to connections that
// exist and to those to come, and to every byte the proxy receives after the
// call has returned.
package faultproxy

import (
	"context"
	"net"
	"sync"
	"time"
)

// Proxy stands in front of one server. All methods are safe for concurrent use.
type Proxy struct {
	target   string
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	wg       sync.WaitGroup
	count    counters

	mu      sync.Mutex
	state   state
	changed chan struct{} // closed, and replaced, when state changes
	seq     uint64        // numbers what was received, see Release
	links   map[*link]struct{}
}

// TB is the part of testing.TB that a proxy uses. The proxy is part of the
// command, which should not import package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// New starts a proxy in front of target ("host:port"). It ends with the test. The
// target need not be up.
func New(t TB, target string) *Proxy {
	t.Helper()
	p, err := Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Listen starts a proxy in front of target on a free port of 127.0.0.1. The
// caller must call Close.
func Listen(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{target: target, listener: l, changed: make(chan struct{}), links: make(map[*link]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the address to which clients connect, "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy and all its connections, and returns when its last
// goroutine has ended. Calling it twice is harmless.
func (p *Proxy) Close() {
	p.cancel()
	p.listener.Close()
	p.Cut()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if p.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond) // out of file descriptors, say
			continue
		}
		p.admit(conn.(*net.TCPConn))
	}
}

func (p *Proxy) admit(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.refuseNew || p.ctx.Err() != nil {
		p.count.refused.Add(1)
		conn.SetLinger(0) // a reset, as from a machine without such a server
		conn.Close()
		return
	}
	p.count.accepted.Add(1)
	l := newLink(p, conn)
	p.links[l] = struct{}{}
	p.wg.Go(l.run)
}

// forget is called once for each link, after it was closed.
func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// arrived counts what was received, and numbers it for Release, in one step, so that Release
// releases all that Stats shows as received.
func (p *Proxy) arrived(dir direction, n int) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.received[dir].Add(int64(n))
	p.seq++
	return p.seq
}

// dark reports whether the proxy is a blackhole. The channel is closed when that
// may have changed.
func (p *Proxy) dark() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state.mode == blackhole, p.changed
}
