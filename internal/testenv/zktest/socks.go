package zktest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// socks is a SOCKS5 proxy for what one member says to the others. A member tells others
// its own address, so only a proxy that all its connections use sees all of them.
type socks struct {
	listener net.Listener
	// via returns the address to connect to instead of a port of another member.
	via   func(port int) (addr string, ok bool)
	group sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil once it is closed
}

func listenSOCKS(via func(port int) (string, bool)) (*socks, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &socks{listener: l, via: via, conns: make(map[net.Conn]bool)}
	s.group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.group.Go(func() { s.serve(c) })
		}
	})
	return s, nil
}

// properties are the system properties that make Java use the proxy, also for addresses
// of this machine.
func (s *socks) properties() []string {
	return []string{"socksProxyHost=127.0.0.1", fmt.Sprintf("socksProxyPort=%d", s.listener.Addr().(*net.TCPAddr).Port), "socksNonProxyHosts="}
}

// keep remembers an open connection. It returns false, and closes it, if s is closed.
func (s *socks) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		c.Close()
		return false
	}
	s.conns[c] = true
	return true
}

func (s *socks) drop(c net.Conn) {
	c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

func (s *socks) serve(from net.Conn) {
	if !s.keep(from) {
		return
	}
	defer s.drop(from)
	addr, err := s.greet(from)
	if err != nil {
		return
	}
	to, err := net.Dial("tcp", addr)
	refused := byte(0)
	if err != nil {
		refused = 5
	}
	if _, answerErr := from.Write([]byte{5, refused, 0, 1, 0, 0, 0, 0, 0, 0}); err != nil || answerErr != nil || !s.keep(to) {
		return
	}
	defer s.drop(to)
	s.group.Go(func() {
		_, _ = io.Copy(to, from) // it ends with either connection
		to.Close()
		from.Close()
	})
	_, _ = io.Copy(from, to)
}

// greet reads the greeting and the request of a connection.
func (s *socks) greet(c net.Conn) (addr string, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return "", err
	}
	if _, err := io.CopyN(io.Discard, c, int64(head[1])); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return "", err
	}
	var ask [10]byte // version, command, 0, kind of address, IPv4, port
	if _, err := io.ReadFull(c, ask[:]); err != nil {
		return "", err
	}
	port := int(binary.BigEndian.Uint16(ask[8:]))
	if addr, ok := s.via(port); ok && ask[0] == 5 && ask[1] == 1 && ask[3] == 1 {
		return addr, nil
	}
	return "", errors.New("zktest: a member wants to connect to something else than another member")
}

func (s *socks) close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.group.Wait()
}
