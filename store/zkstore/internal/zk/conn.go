package zk

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// conn is one connection to a server, on which the session is established. A goroutine
// reads the answers.
type conn struct {
	net.Conn
	in      *bufio.Reader
	session *Session
	gone    chan struct{} // closed when nothing more will be answered

	mu      sync.Mutex
	out     []byte    // what is to be written
	writing bool      // somebody is about to write it
	xid     int32     // of the last request
	sent    []pending // not yet answered, in order
	broken  bool
}

// pending is a request that is not yet answered: the one of that index in its batch.
type pending struct {
	xid, op int32
	sent    clock.Instant
	batch   *batch
	index   int
}

// batch is some requests that have left together. The server answers them in their order.
type batch struct {
	answers []Answer
	done    chan struct{} // closed when each of them is answered, or never will be
}

// answer takes the answer to the request with that index.
func (b *batch) answer(i int, a Answer) {
	if b.answers[i] = a; i+1 == len(b.answers) {
		close(b.done)
	}
}

// handshake names a session. The client names the one to go on with, or none, and the server the one that
// it grants, or none if the client's is over.
type handshake struct {
	timeout  time.Duration
	id       int64 // 0: none
	password []byte
}

const passwordSize = 16

// errNoServer means that the other end has closed the connection instead of answering. A server that
// has applied fewer transactions than the session has seen does so, too.
var errNoServer = errors.New("it is not a ZooKeeper server, or it serves nobody: perhaps its ensemble has no majority")

// meet does the handshake on a new connection and gives the server the identities, before ctx ends.
func meet(ctx context.Context, c net.Conn, zxid int64, h handshake, auth ...Identity) (in *bufio.Reader, w handshake, err error) {
	stop := context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	in = bufio.NewReaderSize(c, 16<<10)
	w, err = greet(c, in, zxid, h)
	for i := 0; i < len(auth) && err == nil && w.id != 0; i++ {
		err = introduce(c, in, auth[i])
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it has not answered: %w", ctx.Err())
	}
	return in, w, err
}

// greet does the handshake. zxid is the last one that the session has seen.
func greet(c io.Writer, in *bufio.Reader, zxid int64, h handshake) (w handshake, err error) {
	if h.id == 0 {
		h.password = make([]byte, passwordSize)
	}
	b := appendLong(appendInt(nil, 0), zxid) // the version of the protocol
	b = appendLong(appendInt(b, int32(h.timeout.Milliseconds())), h.id)
	if err := writePacket(c, appendBytes(b, h.password)); err != nil {
		return w, err
	}
	answer, err := readPacket(in, 1<<10)
	switch {
	case errors.Is(err, io.EOF):
		return w, errNoServer
	case errors.Is(err, errTooLong):
		return w, ErrStranger
	case err != nil:
		return w, err
	}
	f := fields{rest: answer}
	f.int() // the version
	w.timeout, w.id, w.password = time.Duration(f.int())*time.Millisecond, f.long(), slices.Clone(f.bytes())
	if f.short || w.id == 0 && h.id == 0 || w.id != 0 && w.timeout <= 0 {
		err = ErrStranger
	}
	return w, err
}

// Numbers of answers that are to no numbered request.
const (
	announcement = -1
	authXid      = -4
)

// introduce gives the server an identity.
func introduce(c io.Writer, in *bufio.Reader, i Identity) error {
	b := appendInt(appendInt(appendInt(nil, authXid), opAuth), 0)
	if err := writePacket(c, appendBytes(appendBytes(b, i.Scheme), i.ID)); err != nil {
		return err
	}
	answer, err := readPacket(in, 1<<10)
	if err != nil {
		return err
	}
	f := fields{rest: answer}
	f.take(4 + 8) // its number and the zxid
	if code := f.int(); code != 0 || f.short {
		return fmt.Errorf("authenticate with scheme %s: %w", i.Scheme, cmp.Or(errorOf(code), errStrange))
	}
	return nil
}

func writePacket(c io.Writer, b []byte) error {
	_, err := c.Write(append(appendInt(nil, int32(len(b))), b...))
	return err
}

// errTooLong means that a message claims a length that no answer has.
var errTooLong = errors.New("the server sent an answer that is too long")

// readPacket reads a message of at most that many bytes, without its length.
func readPacket(in *bufio.Reader, most uint32) ([]byte, error) {
	head, err := in.Peek(4)
	if err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head)
	if n > most { // a negative length is a large one
		return nil, errTooLong
	}
	_, _ = in.Discard(4)
	b := make([]byte, n)
	_, err = io.ReadFull(in, b)
	return b, err
}

// mostAnswer is the longest answer that is read.
const mostAnswer = 64 << 20

// start begins to read.
func (c *conn) start() {
	c.gone = make(chan struct{})
	go func() {
		var err error
		for err == nil {
			var answer []byte
			if answer, err = readPacket(c.in, mostAnswer); err == nil {
				err = c.take(answer)
			}
		}
		c.end(err)
	}()
}

// flush writes what is to be sent. Goroutines that are about to send something go first: their
// requests then leave with the same write.
func (c *conn) flush() {
	for more := true; more; {
		runtime.Gosched()
		c.mu.Lock()
		out := c.out
		c.out = nil
		c.mu.Unlock()
		_, err := c.Write(out)
		if err != nil {
			c.Close() // the reader notices
		}
		c.mu.Lock()
		more = err == nil && len(c.out) > 0
		c.writing = more
		c.mu.Unlock()
	}
}

// ask sends requests, one right after the other. If the connection has broken, the answers are
// lost.
func (c *conn) ask(requests ...Request) *batch {
	b := &batch{make([]Answer, len(requests)), make(chan struct{})}
	if len(requests) == 0 {
		close(b.done)
		return b
	}
	now := c.session.pool.o.Clock.Now()
	c.mu.Lock()
	for i, r := range requests {
		if c.broken {
			b.answer(i, Answer{Err: ErrLost})
			if r.watch != nil {
				close(r.watch.Over)
			}
			continue
		}
		if r.watch != nil { // before the request leaves, so that no announcement is missed
			c.session.watch(r.watch)
		}
		c.xid = max(1, c.xid+1) // also when the numbers begin again
		c.sent = append(c.sent, pending{c.xid, r.op, now, b, i})
		c.out = appendInt(appendInt(appendInt(c.out, int32(8+len(r.body))), c.xid), r.op)
		c.out = append(c.out, r.body...)
	}
	idle := !c.writing && !c.broken
	c.writing = c.writing || idle
	c.mu.Unlock()
	if idle {
		go c.flush()
	}
	return b
}

// take takes an answer. An error means that the connection cannot go on.
func (c *conn) take(answer []byte) error {
	now := c.session.pool.o.Clock.Now()
	f := fields{rest: answer}
	xid, zxid, code := f.int(), f.long(), f.int()
	if f.short {
		return errStrange
	}
	if xid == announcement {
		return c.announced(f)
	}
	c.mu.Lock()
	if len(c.sent) == 0 || c.sent[0].xid != xid {
		c.mu.Unlock()
		return errStrange
	}
	p := c.sent[0]
	c.sent = c.sent[1:]
	c.mu.Unlock()
	switch {
	case p.op != opSetWatches: // the nodes of the next such request have not been looked at yet
		c.session.answered(p.op, exchange{p.sent, now}, zxid, code == 0)
	case code != 0:
		c.session.endWatches(true)
	}
	a := Answer{Err: errorOf(code), body: f.rest, zxid: zxid}
	if Broken(a.Err) { // there has to be another connection
		c.session.lost(c, a.Err)
	}
	p.batch.answer(p.index, a)
	if Broken(a.Err) {
		return a.Err
	}
	return nil
}

// eventDeleted is the kind of a change that is the end of a node.
const eventDeleted = 2

// announced takes the announcement of a change.
func (c *conn) announced(f fields) error {
	what := f.int()
	f.int() // the state of the connection
	path := string(f.bytes())
	c.session.announced(path, what == eventDeleted)
	return f.err()
}

// end is called once nothing more is read: no request that was not answered will be.
func (c *conn) end(err error) {
	c.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%s has not answered for %v", c.RemoteAddr(), c.session.patience())
	}
	c.mu.Lock()
	c.broken = true
	lost := c.sent
	c.sent = nil
	c.mu.Unlock()
	c.session.lost(c, err) // so that those that ask again wait for the next one
	for _, p := range lost {
		p.batch.answer(p.index, Answer{Err: ErrLost})
	}
	c.session.endWatches(false)
	close(c.gone)
}

// leave ends the connection, and the session with it if the servers are to end that at once.
func (c *conn) leave(session bool) {
	if session {
		c.ask(Request{op: opClose})
		select {
		case <-c.gone:
		case <-time.After(time.Second):
		}
	}
	c.Close()
}
