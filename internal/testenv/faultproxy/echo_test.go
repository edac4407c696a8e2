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

// soon bounds waits that end early unless something is broken.
const soon = 30 * time.Second

// a moment is how long to look before saying that nothing came. Where it is
// too short on a busy machine a test can only miss a fault, not invent one.
const moment = 60 * time.Millisecond

// echoServer answers every line with "re:" and the line.
type echoServer struct {
	l     net.Listener
	wg    sync.WaitGroup
	mu    sync.Mutex
	lines []string
	conns []net.Conn
	ended int // connections the client side of which was closed
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

// got is every line received so far, in order, joined by spaces.
func (e *echoServer) got() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.lines, " ")
}

func (e *echoServer) awaitGot(t *testing.T, want string) {
	t.Helper()
	await(t, func() bool { return e.got() == want }, func() string { return "server to get " + want + ", it has " + e.got() })
}

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

// expect reads one line.
func (c *client) expect(want string) {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(soon))
	got, err := c.r.ReadString('\n')
	if strings.TrimSpace(got) != want || err != nil {
		c.t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}

func (c *client) talk(line string) {
	c.t.Helper()
	c.send(line)
	c.expect("re:" + line)
}

// expectNothing fails when there is an answer, or an end of the connection.
func (c *client) expectNothing() {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(moment))
	if b, err := c.r.ReadByte(); !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("got %q, %v; want silence", b, err)
	}
}

// expectEnd reads what is left, which must be want, until the connection ends
// in whatever way.
func (c *client) expectEnd(want string) {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(soon))
	got, err := io.ReadAll(c.r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("the connection is still open, after %q", got)
	}
	if string(got) != want {
		c.t.Fatalf("got %q before the end, want %q", got, want)
	}
}

// expectRefused connects and must be reset, which may show at once or a little later.
func expectRefused(t *testing.T, p *Proxy) {
	t.Helper()
	c, err := net.DialTimeout("tcp", p.Addr(), soon)
	if err != nil {
		return
	}
	defer c.Close()
	(&client{t: t, c: c.(*net.TCPConn), r: bufio.NewReader(c)}).expectEnd("")
}
