package conn

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Connection is one connection to a server. Its own method exchanges commands for replies. A
// Pipe sends commands over it without waiting for replies. One goroutine at a time may use
// it.
type Connection struct {
	Host     string // of the server
	Conn     net.Conn
	Raw      *direct // the same connection; nil if direct transfer is impossible
	In       resp.Reader
	Pushed   func(resp.Value) // handles pushes during an exchange; nil ignores them
	answered bool             // the server has answered something
}

// Open connects to a. The context bounds connecting only.
func Open(ctx context.Context, a config.Address, c *config.Config) (*Connection, error) {
	conn, err := Dial(ctx, a, c)
	if err != nil {
		return nil, err
	}
	l := new(Connection)
	l.Attach(a.Host, conn, conn)
	return l, nil
}

// Attach makes l use a connection. The argument in is where replies are read from.
func (l *Connection) Attach(host string, conn net.Conn, in io.Reader) {
	l.Host, l.Conn, l.Raw, l.In = host, conn, newDirect(conn), resp.NewReader(in)
}

// Exchange sends commands and waits for their replies, on a connection that is not used
// for anything else meanwhile.
func (l *Connection) Exchange(commands ...[]byte) ([]resp.Value, error) {
	var out []byte
	for _, c := range commands {
		out = append(out, c...)
	}
	failed := func(err error) error {
		if l.answered {
			return err
		}
		return firstError(l.Conn, err)
	}
	if _, err := l.Conn.Write(out); err != nil {
		if !l.answered && endedByPeer(err) { // perhaps it has said why
			if v, err := l.In.Next(); err == nil && turnsAway(v) {
				return nil, resp.ErrorOf(v.Clone())
			}
		}
		return nil, failed(err)
	}
	said := make([]resp.Value, len(commands))
	for i := range said {
		v, err := l.In.Next()
		for err == nil && (v.IsPush() || v.IsInvalidation()) {
			if l.Pushed != nil {
				l.Pushed(v)
			}
			v, err = l.In.Next()
		}
		if err != nil {
			return nil, failed(err)
		}
		if turnsAway(v) {
			return nil, resp.ErrorOf(v.Clone())
		}
		l.answered = true
		said[i] = v.Clone()
	}
	// After a subscription, a push may arrive at any time.
	if kind, some := l.In.Buffered(); some && kind != '>' {
		return nil, ErrUnasked
	}
	return said, nil
}

// turnsAway reports whether v says why the server closes the connection before it has read anything.
func turnsAway(v resp.Value) bool {
	return v.Kind == '-' && (v.Code() == resp.Protected || v.Code() == resp.TooManyClients)
}

var (
	ErrUnasked = errors.New("the server sent a reply without a request")
	ErrSilent  = errors.New("no answer in time")
)

// Login connects to a within c.ConnectTimeout, logs in, and exchanges the commands that
// follow. It fails if the server refuses the login; other error replies are returned. The
// connection has no deadline afterwards.
func Login(ctx context.Context, a config.Address, c *config.Config, commands ...[]byte) (_ *Connection, _ []resp.Value, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	l, err := Open(ctx, a, c)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			l.Conn.Close()
		}
	}()
	deadline, _ := ctx.Deadline()
	l.Conn.SetDeadline(deadline)
	over := context.AfterFunc(ctx, func() { l.Conn.Close() })
	hello, err := c.Login(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	said, err := l.Exchange(append(hello, commands...)...)
	if !over() {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	for _, v := range said[:len(hello)] {
		if v.Kind == '-' {
			return nil, nil, resp.ErrorOf(v)
		}
	}
	return l, said[len(hello):], l.Conn.SetDeadline(time.Time{})
}
