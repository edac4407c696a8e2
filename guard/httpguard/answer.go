package httpguard

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// errReplaced means that the guard has sent an answer of its own.
var errReplaced = errors.New("httpguard: the guard has answered this request")

// errInterrupted is the cause with which the context of a request ends.
var errInterrupted = errors.New("httpguard: a request with a larger token has waited too long for this one")

// accepted reports whether a handler that answers with this status may have done what
// the request asks. A server answers 4xx to a request that it refuses, so it has done
// nothing then. After any other failure nobody knows.
func accepted(status int) bool { return status < 400 || status >= 500 }

// answer is the http.ResponseWriter of a request at the gate. It sees what the handler
// decides before the client does.
type answer struct {
	http.ResponseWriter
	accept  func() error // remembers the token; on an error it has not
	refuse  func(error)  // answers for the handler
	cancel  context.CancelCauseFunc
	leave   func()
	decided bool
	failed  error // of accept

	mu    sync.Mutex
	conn  net.Conn // once hijacked
	over  bool     // the handler has returned
	ended bool     // it was interrupted, or its connection closed
}

// decide is called once the handler's answer is known, before any of it is sent.
func (a *answer) decide(status int) error {
	if a.decided {
		return a.failed
	}
	a.decided = true
	if !accepted(status) {
		return nil
	}
	if err := a.accept(); err != nil {
		a.failed = errReplaced
		a.refuse(err)
	}
	return a.failed
}

func (a *answer) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols || a.decide(status) == nil {
		a.ResponseWriter.WriteHeader(status) // such a status is followed by another
	}
}

func (a *answer) Write(p []byte) (int, error) {
	if err := a.decide(http.StatusOK); err != nil {
		return 0, err
	}
	return a.ResponseWriter.Write(p)
}

// ReadFrom lets io.Copy use what the server's own writer can do.
func (a *answer) ReadFrom(r io.Reader) (int64, error) {
	if err := a.decide(http.StatusOK); err != nil {
		return 0, err
	}
	return io.Copy(a.ResponseWriter, r)
}

func (a *answer) Flush() { a.FlushError() }

func (a *answer) FlushError() error {
	if err := a.decide(http.StatusOK); err != nil {
		return err
	}
	return http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack takes the connection over for the handler. The visit then lasts until the
// connection is closed, even if the handler returns before.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := a.decide(http.StatusSwitchingProtocols); err != nil {
		return nil, nil, err
	}
	conn, rw, err := http.NewResponseController(a.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn = conn
	if a.ended {
		conn.Close()
	}
	return &hijacked{conn, a}, rw, nil
}

// Unwrap lets an http.ResponseController set deadlines.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// interrupt ends the request's context, and makes its reading and writing fail. What
// reads nothing, writes nothing and ignores its context goes on.
func (a *answer) interrupt() {
	a.cancel(errInterrupted)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	a.ended = true
	switch {
	case a.conn != nil:
		a.conn.Close()
		if a.over {
			a.leave()
		}
	case !a.over:
		c := http.NewResponseController(a.ResponseWriter)
		c.SetReadDeadline(time.Now())
		c.SetWriteDeadline(time.Now().Add(time.Second)) // for a short answer
	}
}

// returned is called when the handler has returned or panicked.
func (a *answer) returned() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	switch {
	case a.conn == nil && a.ended:
		// The server sets it again for the next request only if it has a limit of its own.
		http.NewResponseController(a.ResponseWriter).SetWriteDeadline(time.Time{})
		a.leave()
	case a.conn == nil || a.ended:
		a.leave()
	}
}

// closed is called when a hijacked connection is closed.
func (a *answer) closed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	if a.over {
		a.leave()
	}
}

// hijacked is a connection that a handler took over.
type hijacked struct {
	net.Conn
	a *answer
}

func (c *hijacked) Close() error {
	err := c.Conn.Close()
	c.a.closed()
	return err
}

// body fails once its request is interrupted, also for a handler that sets deadlines of
// its own.
type body struct {
	io.ReadCloser
	ctx context.Context
}

func (b body) Read(p []byte) (int, error) {
	if context.Cause(b.ctx) == errInterrupted {
		return 0, errInterrupted
	}
	return b.ReadCloser.Read(p)
}
