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
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
)

// Limits of a connection.
const (
	mostRead     = 2 << 10  // bytes that are read at once, and of the longest line; an idle connection keeps room for them
	mostInFlight = 64       // commands of one connection that are under way
	mostKept     = 16 << 10 // bytes of replies that are kept back while there are more commands
	mostSpare    = 4 << 10  // bytes of memory for replies that an idle connection keeps
	mostDrained  = 64 << 20 // bytes that are read of a client that sent no command, so that it sees why
)

// conn is the connection of a client. One goroutine reads its commands. If the store is in this
// process, that goroutine carries them out. Otherwise each command about a lock is carried out
// beside others while it is under way, since many clients send all their commands over one
// connection: the goroutine starts it, if the store can do that, or hands it to another one.
// Commands about one lock are done in order, and all replies are sent in order.
type conn struct {
	d       *Door
	nc      net.Conn
	host    string // the address of the client, without the port
	in      *bufio.Reader
	words   []string // memory for those of a command
	session session
	meta    description
	bounded bool            // the client has to say who it is soon
	base    context.Context // ends when the server does
	ctx     context.Context // ends when the connection does
	end     context.CancelFunc

	mu      sync.Mutex
	queue   []*call // commands that were not answered yet, or whose replies are not in out
	out     []byte
	spare   []byte    // memory for the next out
	writing bool      // a goroutine writes, and goes on until out is empty
	due     bool      // a goroutine is about to write
	moved   sync.Cond // the queue or out became shorter, or writing ended
	broken  bool      // nothing can be written any more
}

// call is a command that is under way.
type call struct {
	plan    plan
	meta    string // of the lease
	version int
	reply   reply
	ready   bool  // the store has answered
	next    *call // is carried out after this one, since it is about the same lock
}

var calls = sync.Pool{New: func() any { return new(call) }}

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
		c.say("ERR " + wrong.Error())
	}
	c.nc.Close()
}

// refuse closes the connection and says why.
func (c *conn) refuse(why string) {
	defer c.end()
	if c.handshake() == nil {
		c.say(why)
	}
	c.nc.Close()
}

// say sends an error as the last reply.
func (c *conn) say(why string) {
	c.answer(failed(why))
	c.wait()
	c.drain()
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

// Read reads what the client sends. Before that it sends what was started to the store, and the
// replies that were kept back.
func (c *conn) Read(b []byte) (int, error) {
	c.d.Store.Flush()
	c.mu.Lock()
	c.writeLocked()
	c.mu.Unlock()
	return c.nc.Read(b)
}

// read reads commands until there are no more.
func (c *conn) read() error {
	for !c.session.quit {
		c.d.bound(c)
		words, err := readCommand(c.in, c.words[:0])
		c.words = words
		if err != nil {
			var wrong protocolError
			if err != io.EOF && !errors.As(err, &wrong) && !errors.Is(err, os.ErrDeadlineExceeded) {
				c.end() // the client is gone: what it asked for need not be granted
			}
			return err
		}
		client := c.d.client(c)
		var p plan
		if c.command(words, client, &p) {
			c.begin(&p, client)
		}
		clear(words) // an idle connection keeps no long command
	}
	return nil
}

// command answers a command, or returns true and the plan of a command that the client may give.
func (c *conn) command(words []string, client *rights.Client, p *plan) bool {
	words[0] = strings.ToUpper(words[0])
	if c.session.refusing {
		c.answer(c.session.transaction(words))
		return false
	}
	if name := words[0]; client == nil && name != "AUTH" && name != "HELLO" && name != "QUIT" && name != "RESET" {
		c.answer(noAuth)
		return false
	}
	if !c.d.Allow(client, c.host) {
		c.answer(failed("ERR too many requests in a second: that is a limit in the rights of this server"))
		return false
	}
	if r, answered := c.session.answer(words, &c.d.scripts, c.d.Rights != nil, c.login); answered {
		if r.kind == '-' && strings.HasPrefix(r.text, "WRONGPASS") {
			c.audit("refused an unknown client", nil, "")
		}
		c.answer(r)
		return false
	}
	var refused *reply
	if *p, refused = planOf(words, &c.d.scripts); refused == nil {
		refused = c.forbidden(client, p)
	}
	if refused != nil {
		c.answer(*refused)
	}
	return refused == nil
}

// login reports whether a token is one that the rights name.
func (c *conn) login(token string) bool {
	if token == "" {
		return c.d.client(c) != nil
	}
	return c.d.Rights.ByToken(token) != nil
}

// forbidden returns the reply to a client that lacks a right, and notes it.
func (c *conn) forbidden(client *rights.Client, p *plan) *reply {
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

// description is what others see of a client, encoded, as long as it stays the same.
type description struct {
	client  *rights.Client
	session int // how often the session changed
	since   int64
	encoded string
}

// describe returns the description of a lease that the client takes now.
func (c *conn) describe(client *rights.Client) string {
	now := c.d.locks.now().Unix()
	if m := &c.meta; m.encoded == "" || m.since != now || m.client != client || m.session != c.session.changes {
		purpose := c.session.purpose()
		if client.Name != "" {
			purpose = strings.TrimSpace(purpose + " (client " + client.Name + ")")
		}
		h := store.Holder{Host: c.host, Purpose: purpose, Unrenewed: true, Since: time.Unix(now, 0)}
		*m = description{client, c.session.changes, now, h.Encode()}
	}
	return c.meta.encoded
}

// begin carries out a plan, or has another goroutine do so.
func (c *conn) begin(p *plan, client *rights.Client) {
	meta := ""
	if p.takes() {
		meta = c.describe(client)
	}
	if !c.d.atOnce && p.verb != exists {
		c.beginBeside(p, meta)
		return
	}
	if p.verb == exists { // may be about any lock
		c.wait()
	}
	c.answer(c.d.locks.do(c.during(p), p, meta))
}

// beginBeside has another goroutine carry out a plan, after the earlier plans for the same lock.
func (c *conn) beginBeside(p *plan, meta string) {
	k := calls.Get().(*call)
	*k = call{plan: *p, meta: meta, version: c.session.version}
	c.mu.Lock()
	c.makeRoomLocked()
	var before *call
	for _, q := range c.queue {
		if !q.ready && q.plan.name == p.name {
			before = q
		}
	}
	if c.queue = append(c.queue, k); before != nil {
		before.next = k
	}
	c.mu.Unlock()
	if before == nil && !c.start(k) {
		go c.carryOut(k)
	}
}

// start begins a command that the store can carry out without a goroutine.
func (c *conn) start(k *call) bool {
	return c.d.locks.start(c.during(&k.plan), &k.plan, k.meta, func(r reply, ok bool) {
		if !ok {
			go c.carryOut(k)
			return
		}
		c.mu.Lock()
		next := k.next
		k.reply, k.ready = r, true
		c.collectLocked()
		writes := len(c.out) > 0 && !c.writing && !c.due
		c.due = c.due || writes
		c.mu.Unlock()
		if next != nil {
			go c.carryOut(next)
		}
		if writes {
			go c.writeReplies()
		}
	})
}

// during returns the context of carrying out a plan.
func (c *conn) during(p *plan) context.Context {
	if p.verb == release { // a client that says so last may be gone, but others want the lock
		return c.base
	}
	return c.ctx
}

// writeReplies writes the replies that are due.
func (c *conn) writeReplies() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = false
	c.writeLocked()
}

// carryOut carries out a command and those behind it that are about the same lock.
func (c *conn) carryOut(k *call) {
	for k != nil {
		r := c.d.locks.do(c.during(&k.plan), &k.plan, k.meta)
		c.mu.Lock()
		k.reply, k.ready = r, true
		k = k.next
		c.collectLocked()
		c.writeLocked()
		c.mu.Unlock()
	}
}

// answer sends a reply that is known already, after those before it, or keeps it back until
// more is read.
func (c *conn) answer(r reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.makeRoomLocked(); len(c.queue) == 0 {
		c.out = r.append(c.out, c.session.version)
		return
	}
	k := calls.Get().(*call)
	*k = call{version: c.session.version, reply: r, ready: true}
	c.queue = append(c.queue, k)
}

// makeRoomLocked waits until another command may be under way. So a client that does not read
// its replies is not read from either.
func (c *conn) makeRoomLocked() {
	for !c.broken && (len(c.queue) >= mostInFlight || len(c.out) >= mostKept) {
		if len(c.out) >= mostKept && !c.writing {
			c.writeLocked()
			continue
		}
		c.mu.Unlock()
		c.d.Store.Flush() // which may answer calls
		c.mu.Lock()
		if len(c.queue) >= mostInFlight || c.writing {
			c.moved.Wait()
		}
	}
}

// wait waits until all commands are answered.
func (c *conn) wait() {
	c.d.Store.Flush()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) > 0 || c.writing || len(c.out) > 0 {
		if len(c.queue) > 0 || c.writing {
			c.moved.Wait()
		} else {
			c.writeLocked()
		}
	}
}

// collectLocked moves the replies that are next from the queue into out.
func (c *conn) collectLocked() {
	n := 0
	for n < len(c.queue) && c.queue[n].ready {
		k := c.queue[n]
		c.out = k.reply.append(c.out, k.version)
		*k = call{}
		calls.Put(k)
		n++
	}
	if n > 0 {
		left := copy(c.queue, c.queue[n:])
		clear(c.queue[left:])
		c.queue = c.queue[:left]
		c.moved.Broadcast()
	}
}

// writeLocked writes the replies that are kept, unless another goroutine does that. It unlocks
// c.mu meanwhile. A client that does not read them is cut off.
func (c *conn) writeLocked() {
	if c.writing || len(c.out) == 0 {
		return
	}
	c.writing = true
	if len(c.queue) > 0 { // a store often answers several calls together: write their replies at once
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	for len(c.out) > 0 {
		out := c.out
		c.out, c.spare = c.spare[:0], nil
		if !c.broken {
			c.mu.Unlock()
			c.nc.SetWriteDeadline(time.Now().Add(c.d.Patience))
			_, err := c.nc.Write(out)
			c.mu.Lock()
			if err != nil {
				c.broken = true
				c.end()
				c.nc.Close()
			}
		}
		if cap(out) <= mostSpare {
			c.spare = out
		}
	}
	c.writing = false
	c.moved.Broadcast()
}

// drain reads what the client still sends for a while. Closing a connection with unread bytes
// could have the system drop the reply.
func (c *conn) drain() {
	if w, ok := c.nc.(interface{ CloseWrite() error }); ok {
		w.CloseWrite()
	}
	c.nc.SetReadDeadline(time.Now().Add(min(c.d.Patience, time.Second)))
	io.CopyN(io.Discard, c.nc, mostDrained)
}
