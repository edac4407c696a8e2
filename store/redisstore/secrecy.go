package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
)

// dial connects to the server at the address, over TLS if the URL says so.
func (a address) dial(ctx context.Context, o *Options) (net.Conn, error) {
	dial, secrecy := o.Dial, o.TLS
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	conn, err := dial(ctx, "tcp", a.host)
	if err != nil || !a.tls {
		return conn, err
	}
	config := &tls.Config{}
	if secrecy != nil {
		config = secrecy.Clone()
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(a.host)
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, handshakeError(err)
	}
	return secure, nil
}

// schemeError is the failure of a connection whose cause may be that one side
// speaks TLS and the other does not. The words of the error below do not say so.
type schemeError struct {
	err  error
	hint string
}

func (e *schemeError) Error() string { return fmt.Sprintf("%v (%s)", e.err, e.hint) }
func (e *schemeError) Unwrap() error { return e.err }

// handshakeError is the error of a TLS handshake. A server that speaks plain text
// answers it with an error, or waits for more, since it takes it for a part of a
// command.
func handshakeError(err error) error {
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return &schemeError{errors.New("the server speaks plain text"), "begin the URL with redis, not rediss"}
	case isTimeout(err), endedByPeer(err):
		return &schemeError{err, "in the TLS handshake: if the server speaks plain text, begin the URL with redis, not rediss"}
	}
	return err
}

// firstError is the error of the first exchange on a connection. A server that
// speaks TLS ends one that begins in plain text without an answer.
func firstError(conn net.Conn, err error) error {
	if _, secure := conn.(*tls.Conn); !secure && endedByPeer(err) {
		return &schemeError{err, "before the first answer: if the server speaks TLS, begin the URL with rediss"}
	}
	return err
}

func endedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
