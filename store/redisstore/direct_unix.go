//go:build unix

package redisstore

import (
	"io"
	"net"
	"syscall"
)

// direct is a connection without what the net package does around each system
// call. One goroutine at a time may read, and one write.
type direct struct {
	raw  syscall.RawConn
	r, w transfer
}

// transfer is one direction. What is done is made once: it would be memory for
// each call.
type transfer struct {
	do  func(fd uintptr) bool
	buf []byte
	n   int
	err error
}

// newDirect is one for conn, or nil where there is none: a TLS connection writes
// more than it is given.
func newDirect(conn net.Conn) *direct {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil
	}
	d := &direct{raw: raw}
	d.r.do = func(fd uintptr) bool { return d.r.try(fd, sysRead) != syscall.EAGAIN }
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

// Read is as that of a net.Conn.
func (d *direct) Read(b []byte) (int, error) {
	d.r.buf = b
	err := d.raw.Read(d.r.do)
	d.r.buf = nil
	switch {
	case err != nil: // the deadline, or it was closed
		return 0, err
	case d.r.err != nil:
		return 0, d.r.err
	case d.r.n == 0:
		return 0, io.EOF
	}
	return d.r.n, nil
}

// writeNow writes as much as there is room for, and does not wait.
func (d *direct) writeNow(out []byte) (int, error) {
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
