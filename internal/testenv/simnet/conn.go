package simnet

import (
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is the client's end of a connection, which the code under test reads and writes. What
// it writes is kept until Take, and it reads what Deliver adds.
type Conn struct {
	hooks Hooks

	mu     sync.Mutex
	in     []byte
	broken error // the error of Read once in is empty
	out    []byte
	closed bool

	wake          chan struct{} // there may be something to read
	done          chan struct{} // closed by Close
	reads, writes deadline
}

// Hooks connect a Conn with its network. Each may be nil.
type Hooks struct {
	// Wrote is called after something was written, and after Close.
	Wrote func()
	// Stirred is called when there is something to read.
	Stirred func()
	// Space returns a channel that is closed when there is room to write, or nil if there is
	// room now.
	Space *atomic.Pointer[chan struct{}]
}

// NewConn returns a connection.
func NewConn(h Hooks) *Conn {
	if h.Wrote == nil {
		h.Wrote = func() {}
	}
	if h.Stirred == nil {
		h.Stirred = func() {}
	}
	if h.Space == nil {
		h.Space = new(atomic.Pointer[chan struct{}])
	}
	return &Conn{hooks: h, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
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
func (c *Conn) Write(b []byte) (int, error) {
	for room := c.hooks.Space.Load(); room != nil; room = c.hooks.Space.Load() {
		select {
		case <-*room:
		case <-c.done:
			return 0, net.ErrClosed
		case <-c.writes.passed():
			return 0, os.ErrDeadlineExceeded
		}
	}
	if err := c.put(b); err != nil {
		return 0, err
	}
	c.hooks.Wrote()
	return len(b), nil
}

func (c *Conn) put(b []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return net.ErrClosed
	case c.broken != nil:
		return c.broken
	}
	c.out = append(c.out, b...)
	return nil
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	if c.close() {
		c.hooks.Wrote()
	}
	return nil
}

func (c *Conn) close() (now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.closed = true
	close(c.done)
	c.reads.set(time.Time{})
	c.writes.set(time.Time{})
	return true
}

// Take returns what was written since it was last called, and whether the connection
// was closed.
func (c *Conn) Take() (out []byte, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, c.out = c.out, nil
	return out, c.closed
}

// Deliver adds bytes for the client to read.
func (c *Conn) Deliver(b []byte) {
	c.mu.Lock()
	c.in = append(c.in, b...)
	c.mu.Unlock()
	c.stir()
}

// End breaks the connection: Read fails once the client has read what was delivered.
func (c *Conn) End(err error) {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = err
	}
	c.mu.Unlock()
	c.stir()
}

func (c *Conn) stir() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
	c.hooks.Stirred()
}

// The rest of net.Conn.

func (c *Conn) LocalAddr() net.Addr                { return address("client") }
func (c *Conn) RemoteAddr() net.Addr               { return address("server") }
func (c *Conn) SetDeadline(t time.Time) error      { c.reads.set(t); c.writes.set(t); return nil }
func (c *Conn) SetReadDeadline(t time.Time) error  { c.reads.set(t); return nil }
func (c *Conn) SetWriteDeadline(t time.Time) error { c.writes.set(t); return nil }

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

// set sets the deadline. A zero t removes it. A deadline that has passed ends pending calls.
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

// ErrRefused and ErrReset are the errors that a client gets if its server is down.
var (
	ErrRefused = errors.New("connection refused")
	ErrReset   = errors.New("connection reset by peer")
)
