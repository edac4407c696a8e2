package redisdoor

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
)

// Limits of a connection.
const (
	mostInFlight = 64       // commands of one connection that are under way
	flushAt      = 16 << 10 // bytes of replies that are kept back while there are more commands
	mostSpare    = 4 << 10  // bytes of memory for replies that an idle connection keeps
	mostDrained  = 64 << 20 // bytes that are read of a client that sent no command, so that it sees why
)

// conn is the connection of a client. One goroutine reads its commands. Each command about a
// lock has a goroutine for itself while it is under way, since many clients send all their
// commands over one connection. Commands about one lock are done in order, and all replies are
// sent in order.
type conn struct {
	d       *Door
	nc      net.Conn
	host    string // the address of the client, without the port
	in      *bufio.Reader
	session session
	bounded bool            // the client has to say who it is soon
	base    context.Context // ends when the server does
	ctx     context.Context // ends when the connection does
	end     context.CancelFunc

	mu     sync.Mutex
	queue  []*call // commands that were not answered yet, or whose replies are not in out
	out    []byte
	room   sync.Cond // the queue became shorter
	broken bool      // nothing can be written any more
}

// call is a command that is under way.
type call struct {
	name    string
	done    chan struct{} // closed when the store has answered
	version int
	reply   reply
	ready   bool
}

// serve answers commands until the connection ends.
func (c *conn) serve() {
	defer c.end()
	err := c.handshake()
	if err == nil {
		err = c.read()
	}
	c.wait()
	var wrong protocolError
	if errors.As(err, &wrong) {
		c.answer(failed("ERR " + wrong.Error()))
		c.wait()
		c.drain()
	}
	c.nc.Close()
}

// handshake begins TLS, if the listener has it.
func (c *conn) handshake() error {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, stop := context.WithTimeout(c.ctx, c.d.Patience)
	defer stop()
	return t.HandshakeContext(ctx)
}

// Read reads what the client sends. Before that it sends the replies that were kept back.
func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	c.writeLocked()
	c.mu.Unlock()
	return c.nc.Read(b)
}

// read reads commands until there are no more.
func (c *conn) read() error {
	for !c.session.quit {
		c.d.bound(c)
		words, err := readCommand(c.in)
		if err != nil {
			var wrong protocolError
			if err != io.EOF && !errors.As(err, &wrong) && !errors.Is(err, os.ErrDeadlineExceeded) {
				c.end() // the client is gone: what it asked for need not be granted
			}
			return err
		}
		c.command(words)
	}
	return nil
}

// command answers a command, or begins to do it.
func (c *conn) command(words []string) {
	client := c.d.client(c)
	if c.session.refusing {
		c.answer(c.session.transaction(words))
		return
	}
	name := strings.ToUpper(words[0])
	if client == nil && name != "AUTH" && name != "HELLO" && name != "QUIT" && name != "RESET" {
		c.answer(noAuth)
		return
	}
	if !c.d.Allow(client, c.host) {
		c.answer(failed("ERR too many requests in a second: that is a limit in the rights of this server"))
		return
	}
	if r, answered := c.session.answer(words, &c.d.scripts, c.d.Rights != nil, c.login); answered {
		if r.kind == '-' && strings.HasPrefix(r.text, "WRONGPASS") {
			c.audit("refused an unknown client", nil, "")
		}
		c.answer(r)
		return
	}
	p, refused := planOf(words, &c.d.scripts)
	if refused == nil {
		refused = c.forbidden(client, p)
	}
	if refused != nil {
		c.answer(*refused)
		return
	}
	c.begin(p, client)
}

// login reports whether a token is one that the rights name.
func (c *conn) login(token string) bool {
	if token == "" {
		return c.d.client(c) != nil
	}
	return c.d.Rights.ByToken(token) != nil
}

// forbidden returns the reply to a client that lacks a right, and notes it.
func (c *conn) forbidden(client *rights.Client, p plan) *reply {
	names := p.names
	if names == nil {
		names = []string{p.name}
	}
	for _, name := range names {
		if err := store.CheckName(name); err != nil {
			r := failed("ERR " + err.Error())
			return &r
		}
		for _, need := range []rights.Right{rights.Look, rights.Lock} {
			if need == rights.Look && !p.looks() || need == rights.Lock && !p.verb.locks() || client.May(need, name) {
				continue
			}
			c.audit("refused a right", client, name, slog.String("right", need.String()))
			r := failed("NOPERM this client has no right to " + need.String() + " here")
			return &r
		}
	}
	return nil
}

func (c *conn) audit(what string, client *rights.Client, name string, more ...slog.Attr) {
	attrs := []slog.Attr{slog.Bool("audit", true), slog.String("address", c.host), slog.String("door", "redis")}
	if client != nil {
		attrs = append(attrs, slog.String("client", client.Name))
	}
	if name != "" {
		attrs = append(attrs, slog.String("lock", store.Excerpt(name)))
	}
	c.d.Log.LogAttrs(c.ctx, slog.LevelWarn, what, append(attrs, more...)...)
}

// holder describes the client to others.
func (c *conn) holder(client *rights.Client) store.Holder {
	purpose := c.session.purpose()
	if client.Name != "" {
		purpose = strings.TrimSpace(purpose + " (client " + client.Name + ")")
	}
	return store.Holder{Host: c.host, Purpose: purpose, Unrenewed: true}
}

// begin begins to carry out a plan, after those before it that are about the same lock.
func (c *conn) begin(p plan, client *rights.Client) {
	holder := c.holder(client)
	k := &call{name: p.name, done: make(chan struct{}), version: c.session.version}
	var before []*call
	c.mu.Lock()
	for len(c.queue) >= mostInFlight && !c.broken {
		c.room.Wait()
	}
	for i := len(c.queue) - 1; i >= 0; i-- {
		if q := c.queue[i]; !q.ready && (q.name == p.name || p.names != nil || q.name == "") {
			before = append(before, q)
			if p.names == nil {
				break
			}
		}
	}
	c.queue = append(c.queue, k)
	c.mu.Unlock()
	ctx := c.ctx
	if p.verb == release { // a client that says so last may be gone, but others want the lock
		ctx = c.base
	}
	c.d.run(func() {
		for _, q := range before {
			<-q.done
		}
		r := c.d.locks.do(ctx, p, holder)
		close(k.done)
		c.mu.Lock()
		k.reply, k.ready = r, true
		c.collectLocked()
		c.writeLocked()
		c.mu.Unlock()
	})
}

// answer sends a reply that is known already, after those before it, or keeps it back until
// more is read.
func (c *conn) answer(r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) >= mostInFlight && !c.broken {
		c.room.Wait()
	}
	k := &call{version: c.session.version, reply: r, ready: true}
	c.queue = append(c.queue, k)
	c.collectLocked()
	if len(c.out) >= flushAt {
		c.writeLocked()
	}
}

// wait waits until all commands are answered.
func (c *conn) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 {
		c.room.Wait()
	}
	c.writeLocked()
}

// collectLocked moves the replies that are next from the queue into out.
func (c *conn) collectLocked() {
	n := 0
	for n < len(c.queue) && c.queue[n].ready {
		c.out = c.queue[n].reply.append(c.out, c.queue[n].version)
		c.queue[n] = nil
		n++
	}
	if n == 0 {
		return
	}
	if c.queue = c.queue[n:]; len(c.queue) == 0 {
		c.queue = nil
	}
	c.room.Broadcast()
}

// writeLocked writes the replies that are kept. A client that does not read them is cut off.
func (c *conn) writeLocked() {
	if len(c.out) > 0 && !c.broken {
		c.nc.SetWriteDeadline(time.Now().Add(c.d.Patience))
		if _, err := c.nc.Write(c.out); err != nil {
			c.broken = true
			c.end()
			c.nc.Close()
		}
	}
	if c.out = c.out[:0]; cap(c.out) > mostSpare {
		c.out = nil
	}
}

// drain reads what the client still sends for a while. Closing a connection with unread bytes
// could have the system drop the reply.
func (c *conn) drain() {
	if w, ok := c.nc.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
	c.nc.SetReadDeadline(time.Now().Add(min(c.d.Patience, time.Second)))
	io.CopyN(io.Discard, c.in, mostDrained)
}
