package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
)

// watching is a listener whose connections remember how they ended.
type watching struct{ net.Listener }

func (l watching) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &watched{Conn: c}, nil
}

// watched is a connection that remembers how it ended: the client closed it, or it broke, as if
// nothing acknowledges what was sent. In the latter case the client may live on, without knowing.
type watched struct {
	net.Conn
	ended atomic.Int32
}

const (
	closedByClient = iota + 1
	broken
)

func (c *watched) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.note(err)
	return n, err
}

func (c *watched) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.note(err)
	return n, err
}

func (c *watched) note(err error) {
	switch {
	case err == nil, errors.Is(err, os.ErrDeadlineExceeded): // deadlines are the server's
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		c.ended.CompareAndSwap(0, closedByClient)
	default:
		c.ended.CompareAndSwap(0, broken)
	}
}

type connKey struct{}

// withConn makes the connection of a request known to its handler.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// isBroken reports whether the connection of a request ended, and not because the client closed it.
func isBroken(r *http.Request) bool {
	c, ok := r.Context().Value(connKey{}).(*watched)
	return ok && c.ended.Load() == broken
}
