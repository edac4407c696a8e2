package sim

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// conn is the client's end of a connection, which the production code reads and
// writes. What it writes lies there until the driver takes it; the driver delivers
// what it can read. The other end is a stream.
type conn struct {
	w     *world
	space *atomic.Pointer[chan struct{}] // closed when there is room to write; nil: there is

	mu     sync.Mutex
	in     []byte
	broken error // what a Read says once in is empty
	out    []byte
	closed bool

	wake          chan struct{} // there may be something to read
	done          chan struct{} // closed by Close
	reads, writes deadline
}

func newConn(w *world, space *atomic.Pointer[chan struct{}]) *conn {
	return &conn{w: w, space: space, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		late := c.reads.passed()
		c.mu.Lock()
		n, err := copy(b, c.in), c.broken
		c.in = c.in[n:]
		closed := c.closed
		c.mu.Unlock()
		switch {
		case closed:
			return 0, net.ErrClosed
		case n > 0:
			return n, nil
		case err != nil:
			return 0, err
		}
		select {
		case <-c.wake:
		case <-c.done:
		case <-late:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	for room := c.space.Load(); room != nil; room = c.space.Load() {
		select {
		case <-*room:
		case <-c.done:
			return 0, net.ErrClosed
		case <-c.writes.passed():
			return 0, os.ErrDeadlineExceeded
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return 0, net.ErrClosed
	case c.broken != nil:
		return 0, c.broken
	}
	c.out = append(c.out, b...)
	c.w.wake()
	return len(b), nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.done)
		c.reads.set(time.Time{})
		c.writes.set(time.Time{})
		c.w.wake()
	}
	return nil
}

// take is what was written since, and whether the connection was closed.
func (c *conn) take() (out []byte, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, c.out = c.out, nil
	return out, c.closed
}

// deliver gives the client something to read.
func (c *conn) deliver(b []byte) {
	c.mu.Lock()
	c.in = append(c.in, b...)
	c.mu.Unlock()
	c.stir()
}

// end has the client find that the connection is broken, once it has read what came.
func (c *conn) end(err error) {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = err
	}
	c.mu.Unlock()
	c.stir()
}

func (c *conn) stir() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
	c.w.stirred = true
}

func (c *conn) LocalAddr() net.Addr                { return address("client") }
func (c *conn) RemoteAddr() net.Addr               { return address("server") }
func (c *conn) SetDeadline(t time.Time) error      { c.reads.set(t); c.writes.set(t); return nil }
func (c *conn) SetReadDeadline(t time.Time) error  { c.reads.set(t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.writes.set(t); return nil }

type address string

func (a address) Network() string { return "simulated" }
func (a address) String() string  { return string(a) }

// deadline closes a channel when it has passed.
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	late  chan struct{}
}

func (d *deadline) passed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.late == nil {
		d.late = make(chan struct{})
	}
	return d.late
}

// set moves the deadline; a zero t is none. One that has passed ends what waits.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	late := d.late
	if late == nil {
		late = make(chan struct{})
	}
	select {
	case <-late:
		late = make(chan struct{})
	default:
	}
	d.late = late
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		close(late)
	default:
		d.timer = time.AfterFunc(left, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.late == late {
				close(late)
				d.late = nil
			}
		})
	}
}

var (
	errRefused = errors.New("connection refused")
	errReset   = errors.New("connection reset by peer")
	errKilled  = errors.New("process is dead")
)
