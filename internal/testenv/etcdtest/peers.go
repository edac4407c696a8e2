package etcdtest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
)

// peerProxy passes on what the other members of a cluster send to one member. Behind it, each
// of them has a proxy of its own, so that each can be cut off alone.
type peerProxy struct {
	target   string
	listener net.Listener
	group    sync.WaitGroup

	mu      sync.Mutex
	proxies map[string]*faultproxy.Proxy // by the sender's ID
	isCut   func(from string) bool
	conns   map[net.Conn]bool
}

func newPeerProxy(target string) (*peerProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &peerProxy{target: target, listener: l, proxies: make(map[string]*faultproxy.Proxy), isCut: func(string) bool { return false }, conns: make(map[net.Conn]bool)}
	p.group.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.group.Go(func() { p.pass(conn) })
		}
	})
	return p, nil
}

func (p *peerProxy) addr() string { return p.listener.Addr().String() }

// keep counts an open connection. It returns false, and closes it, if p is closed.
func (p *peerProxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns == nil {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *peerProxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pass serves one connection. Its first request names the member that all its requests are
// from.
func (p *peerProxy) pass(conn net.Conn) {
	if !p.keep(conn) {
		return
	}
	defer p.drop(conn)
	var read bytes.Buffer
	in := bufio.NewReader(io.TeeReader(conn, &read))
	first, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	by, err := p.from(first.Header.Get("X-Server-From"))
	if err != nil {
		return
	}
	to, err := net.Dial("tcp", by.Addr())
	if err != nil || !p.keep(to) {
		return
	}
	defer p.drop(to)
	if _, err := to.Write(read.Bytes()); err != nil {
		return
	}
	p.group.Go(func() {
		_, _ = io.Copy(to, conn) // it ends with either connection
		conn.Close()
		to.Close()
	})
	_, _ = io.Copy(conn, to)
}

// from returns the proxy for the connections of a member.
func (p *peerProxy) from(id string) (*faultproxy.Proxy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if by := p.proxies[id]; by != nil {
		return by, nil
	}
	by, err := faultproxy.Listen(p.target)
	if err != nil {
		return nil, err
	}
	p.proxies[id] = by
	if p.isCut(id) {
		by.Blackhole()
	}
	return by, nil
}

// cut cuts off the members for which it is true, and reconnects the others.
func (p *peerProxy) cut(isCut func(id string) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isCut = isCut
	for id, by := range p.proxies {
		if isCut(id) {
			by.Blackhole()
		} else {
			by.Pass()
		}
	}
}

func (p *peerProxy) close() {
	p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		c.Close()
	}
	p.conns = nil
	for _, by := range p.proxies {
		defer by.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
}
