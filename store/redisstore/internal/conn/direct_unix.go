//go:build unix

package conn

import (
	"io"
	"net"
	"syscall"
)

// direct reads and writes a connection without the overhead of package net. At most one
// goroutine may read, and one write, at a time.
type direct struct {
	raw  syscall.RawConn
	r, w transfer
	now  bool // a read does not wait
}

// transfer is one direction. Its function is created once, to avoid an allocation for
// each call.
type transfer struct {
	do  func(fd uintptr) bool
	buf []byte
	n   int
	err error
}

// newDirect returns nil if direct transfer is impossible: a TLS connection writes other
// bytes than it is given.
func newDirect(conn net.Conn) *direct {
	var c syscall.Conn
	switch conn := conn.(type) {
	case *net.TCPConn:
		c = conn
	case *net.UnixConn:
		c = conn
	default:
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.r.do = func(fd uintptr) bool { return d.r.try(fd, sysRead) != syscall.EAGAIN || d.now }
	d.w.do = func(fd uintptr) bool { d.w.try(fd, sysWrite); return true }
	return d
}

func (t *transfer) try(fd uintptr, call func(int, []byte) (int, error)) error {
	for {
		if t.n, t.err = call(int(fd), t.buf); t.err != syscall.EINTR {
			return t.err
		}
	}
}

// Read implements io.Reader.
func (d *direct) Read(b []byte) (int, error) {
	d.r.buf = b
	err := d.raw.Read(d.r.do)
	d.r.buf = nil
	switch {
	case err != nil: // the deadline has passed, or the connection was closed
		return 0, err
	case d.r.err != nil:
		return 0, d.r.err
	case d.r.n == 0:
		return 0, io.EOF
	}
	return d.r.n, nil
}

// ReadNow is like Read, but does not wait: ok is false if nothing has been received.
func (d *direct) ReadNow(b []byte) (n int, ok bool, err error) {
	d.now = true
	n, err = d.Read(b)
	d.now = false
	if err == syscall.EAGAIN {
		return 0, false, nil
	}
	return n, err == nil, err
}

// WriteNow writes as much as fits into the socket's buffer. It does not block.
func (d *direct) WriteNow(out []byte) (int, error) {
	d.w.buf = out
	err := d.raw.Write(d.w.do)
	d.w.buf = nil
	switch {
	case err != nil:
		return 0, err
	case d.w.err == syscall.EAGAIN:
		return 0, nil
	case d.w.err != nil:
		return 0, d.w.err
	}
	return d.w.n, nil
}
