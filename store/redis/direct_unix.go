//go:build unix

package redis

import (
	"net"
	"syscall"
)

// direct writes to a connection without waiting. One goroutine at a time.
type direct struct {
	raw syscall.RawConn
	do  func(fd uintptr) bool // made once: it would be memory for each write

	out     []byte
	written int
	err     error
}

// newDirect is one for conn, or nil where there is no such way: a TLS connection
// writes more than it is given.
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
	d.do = func(fd uintptr) bool {
		for {
			if d.written, d.err = syscall.Write(int(fd), d.out); d.err != syscall.EINTR {
				return true
			}
		}
	}
	return d
}

// write writes as much as there is room for.
func (d *direct) write(out []byte) (written int, err error) {
	d.out, d.written, d.err = out, 0, nil
	err = d.raw.Write(d.do)
	d.out = nil
	switch {
	case err != nil:
		return 0, err
	case d.err == syscall.EAGAIN:
		return 0, nil
	case d.err != nil:
		return 0, d.err
	}
	return d.written, nil
}
