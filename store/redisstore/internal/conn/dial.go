package conn

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
)

// Dial connects to the server at the address, over TLS if the URL selects it.
func Dial(ctx context.Context, a config.Address, o *config.Config) (net.Conn, error) {
	dial, secrecy := o.Dial, o.TLS
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	conn, err := dial(ctx, a.Network(), a.Host)
	if err != nil || !a.TLS {
		return conn, err
	}
	config := &tls.Config{}
	if secrecy != nil {
		config = secrecy.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(a.Host)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, handshakeError(err)
	}
	return secure, nil
}

// SchemeError is a connection failure whose cause may be that only one side speaks TLS.
// The underlying error does not say so.
type SchemeError struct {
	Err  error
	Hint string
}

func (e *SchemeError) Error() string { return fmt.Sprintf("%v (%s)", e.Err, e.Hint) }
func (e *SchemeError) Unwrap() error { return e.Err }

// WithoutHint returns err without what a SchemeError adds to it: a server that has answered before
// speaks as the URL says.
func WithoutHint(err error) error {
	if scheme, ok := errors.AsType[*SchemeError](err); ok {
		return scheme.Err
	}
	return err
}

// handshakeError is the error of a TLS handshake. A server without TLS answers the
// handshake with an error, or waits for more because it reads it as part of a command.
func handshakeError(err error) error {
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return &SchemeError{errors.New("the server speaks plain text"), "begin the URL with redis, not rediss"}
	case IsTimeout(err), endedByPeer(err):
		return &SchemeError{err, "in the TLS handshake: if the server speaks plain text, begin the URL with redis, not rediss"}
	}
	return err
}

// firstError is the error of the first exchange on a connection. A server that speaks TLS
// closes a connection that begins without it, and does not answer.
func firstError(conn net.Conn, err error) error {
	if _, secure := conn.(*tls.Conn); !secure && endedByPeer(err) {
		return &SchemeError{err, "before the first answer: if the server speaks TLS, begin the URL with rediss"}
	}
	return err
}

func endedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func IsTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
