package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// soon bounds waits for events that come soon unless something is broken.
const soon = 30 * time.Second

// moment is how long a test waits to see that nothing arrives. If it is too short on a busy
// machine, the test misses a fault, but does not fail.
const moment = 60 * time.Millisecond

// echoServer answers every line with "re:" and the line.
type echoServer struct {
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	lines []string
	conns []net.Conn
	ended int // connections that the client side has closed
}

func startEcho(t *testing.T) *echoServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echoServer{l: l}
	e.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.mu.Lock()
			e.conns = append(e.conns, c)
			e.mu.Unlock()
			e.wg.Go(func() { e.serve(c) })
		}
	})
	t.Cleanup(e.close)
	return e
}

func (e *echoServer) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			e.mu.Lock()
			e.ended++
			e.mu.Unlock()
			return
		}
		e.mu.Lock()
		e.lines = append(e.lines, strings.TrimSpace(line))
		e.mu.Unlock()
		io.WriteString(c, "re:"+line)
	}
}

func (e *echoServer) close() {
	e.l.Close()
	e.hangUp()
	e.wg.Wait()
}

// hangUp closes all connections from the server's side.
func (e *echoServer) hangUp() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.conns {
		c.Close()
	}
}

// got returns the lines received so far, in order, joined by spaces.
func (e *echoServer) got() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, " ")
}

func (e *echoServer) awaitGot(t *testing.T, want string) {
	t.Helper()
	await(t, func() bool { return e.got() == want }, func() string { return "server to receive " + want + "; it has received " + e.got() })
}

// await waits until ok returns true, and fails the test if it does not.
func await(t *testing.T, ok func() bool, what func() string) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for the %s", what())
		}
	}
}

// client is one connection through the proxy.
type client struct {
	t *testing.T
	c *net.TCPConn
	r *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.Addr(), soon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t: t, c: c.(*net.TCPConn), r: bufio.NewReader(c)}
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.c, line+"\n"); err != nil {
		c.t.Fatalf("sending %q: %v", line, err)
	}
}

// expect requires the next line to be want.
func (c *client) expect(want string) {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(soon))
	got, err := c.r.ReadString('\n')
	if strings.TrimSpace(got) != want || err != nil {
		c.t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

// talk sends a line, and requires the reply to it.
func (c *client) talk(line string) {
	c.t.Helper()
	c.send(line)
	c.expect("re:" + line)
}

// expectNothing requires that no reply arrives, and that the connection stays open.
func (c *client) expectNothing() {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(moment))
	if b, err := c.r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v; want no reply", b, err)
	}
}

// expectEnd reads to the end of the connection, and requires the rest to be want. The
// connection may end in any way.
func (c *client) expectEnd(want string) {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(soon))
	got, err := io.ReadAll(c.r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("the connection is still open after %q, want its end", got)
	}
	if string(got) != want {
		c.t.Fatalf("got %q before the end, want %q", got, want)
	}
}

// expectRefused requires that a new connection is refused, or reset before it gets anything.
func expectRefused(t *testing.T, p *Proxy) {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.Addr(), soon)
	if err != nil {
		return
	}
	defer c.Close()
	(&client{t: t, c: c.(*net.TCPConn), r: bufio.NewReader(c)}).expectEnd("")
}
