package redisstore

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

const (
	// firstRetry is the pause before a failed node is tried again.
	firstRetry = 50 * time.Millisecond
	// eagerRetries is how often a node is tried with at most twice that pause. A node is
	// often away for a moment only, and other clients may wait for releases that it has
	// to receive. Later the pause doubles up to a second.
	eagerRetries = 20
)

// retryPause returns the pause after a failure, given the number of failures in a row
// before it.
func retryPause(failures int) time.Duration {
	if failures <= eagerRetries {
		return firstRetry << min(failures, 1)
	}
	return min(firstRetry<<min(failures-eagerRetries+1, 5), time.Second)
}

// connect makes a connection and reports whether it succeeded.
func (n *node) connect() bool {
	n.mu.Lock()
	n.dialing = true
	n.mu.Unlock()
	w, err := n.reach()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialing = false
	if err == nil {
		if n.down != nil {
			n.log.Info("node can be used again")
		}
		n.dropLooksLocked()
		n.failures, n.down, n.wire, n.reached = 0, nil, w, true
		n.connectedLocked()
		w.start()
		return true
	}
	n.setDownLocked(err, n.s.o.ConnectTimeout, retryPause(n.failures))
	n.failures++
	return false
}

// setDownLocked refuses calls for the node until the pause is over. If an answer was late,
// waited is how long the client waited for it. The mutex is held.
func (n *node) setDownLocked(err error, waited, pause time.Duration) {
	if n.down == nil && !n.closed {
		n.log.Warn("node cannot be used", "err", err)
	}
	outcome, err := classify(err, waited)
	n.down = &driver.Refusal{Outcome: outcome, Err: err}
	n.retryAt = time.Now().Add(pause)
	n.scheduleResendLocked(time.Now())
}

// reach connects to the right server and prepares the connection.
func (n *node) reach() (*wire, error) {
	if n.s.sentinels != nil {
		return n.reachMaster()
	}
	return n.open(n.ctx, n.addr.host, n.greet)
}

// open connects to host and calls greet before the connection is used. The connection
// ends with the node. ConnectTimeout bounds all of it.
func (n *node) open(ctx context.Context, host string, greet func(*wire) error) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, n.s.o.ConnectTimeout)
	defer cancel()
	conn, err := n.dial(ctx, host)
	if err != nil {
		return nil, err
	}
	w := &wire{n: n, host: host, conn: conn, raw: newDirect(conn)}
	w.in = resp.NewReader(w)
	w.forget = context.AfterFunc(n.ctx, func() { conn.Close() })
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	if err = greet(w); err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		w.forget()
		conn.Close()
		if n.ctx.Err() != nil {
			err = n.ctx.Err()
		}
		return nil, err
	}
	return w, nil
}

func (n *node) dial(ctx context.Context, host string) (net.Conn, error) {
	a := n.addr
	a.host = host
	return a.dial(ctx, &n.s.o)
}

// login returns the commands that begin a connection and have to succeed.
func (n *node) login() []*script.Command {
	hello := n.addr.auth()
	if n.addr.db != 0 {
		hello = append(hello, script.NewCommand("SELECT", strconv.Itoa(n.addr.db)))
	}
	return hello
}

// auth returns the AUTH command, if there is a password.
func (a address) auth() []*script.Command {
	switch {
	case a.username != "":
		return []*script.Command{script.NewCommand("AUTH", a.username, a.password)}
	case a.password != "":
		return []*script.Command{script.NewCommand("AUTH", a.password)}
	}
	return nil
}

// greet runs the exchange that begins a connection.
func (n *node) greet(w *wire) error {
	hello := n.login()
	must := len(hello)
	hello = append(hello, script.NewCommand("HELLO", "3"), script.NewCommand("CLIENT", "SETNAME", "leasehold"), script.NewCommand("INFO"), script.NewCommand("CONFIG", "GET", "*appendfsync*"), timeCommand)
	sent := n.s.o.Clock.Now()
	said, err := w.exchange(hello)
	received := n.s.o.Clock.Now()
	if err != nil {
		return err
	}
	for _, v := range said[:must] {
		if v.Kind == '-' {
			return resp.ErrorOf(v)
		}
	}
	// An error from CLIENT SETNAME does no harm.
	if err := n.identify(said[must+2], said[must+3]); err != nil {
		return err
	}
	n.clockSaid(said[must+4], sent, received)
	w.run = n.runOf()
	if err := n.isMaster(w); err != nil {
		return err
	}
	if err := n.learn(w); err != nil {
		return err
	}
	if n.s.guarded.Load() && marksLooked {
		if err := n.arrive(w, said[must].Kind != '-'); err != nil {
			return err
		}
	}
	return n.listen(w, said[must])
}

// identify checks which server answers. It runs on every connection before the first
// request. Its arguments are the replies to INFO and CONFIG GET.
func (n *node) identify(info, fsync resp.Value) error {
	if info.Code() == resp.Denied {
		n.log.Warn("INFO is not permitted: cannot check whether two addresses lead to the same server", "err", string(info.Text))
		info = resp.Value{}
	}
	if info.Kind == '-' {
		return resp.ErrorOf(info)
	}
	id := parseIdentity(info, fsync)
	if id.loading {
		return resp.ErrorOf(resp.Value{Text: []byte("LOADING the server is not up yet")})
	}
	fit := id
	if n.s.route != nil { // for members of a cluster, redirections notice a replica
		fit.mode, fit.role = "", ""
	}
	if err := fit.unfit(); err != nil && len(n.s.nodes) > 1 {
		return err
	} else if err != nil && (n.s.sentinels == nil || id.role == "master") { // with sentinels, isMaster checks the role
		n.log.Warn("the server can lose locks", "err", err)
	}
	n.mu.Lock()
	n.server = id
	n.mu.Unlock()
	return n.s.servers.vet(n, id, n.s.nodes)
}

// learn loads all scripts before the first call by hash. A script that had to be sent
// again as text would delay everything that is enqueued behind it. An error reply is
// ignored here: callers of the script will get it too.
func (n *node) learn(w *wire) error {
	lessons := make([]*script.Command, len(script.All))
	for i, s := range script.All {
		lessons[i] = &script.Command{Bytes: s.Lesson}
	}
	_, err := w.exchange(lessons)
	return err
}

// exchange sends commands and waits for their replies, on a connection that is not used
// for anything else yet.
func (w *wire) exchange(commands []*script.Command) ([]resp.Value, error) {
	var out []byte
	for _, c := range commands {
		out = append(out, c.Bytes...)
	}
	failed := func(err error) error {
		if w.answered {
			return err
		}
		return firstError(w.conn, err)
	}
	if _, err := w.conn.Write(out); err != nil {
		return nil, failed(err)
	}
	said := make([]resp.Value, len(commands))
	for i := range said {
		v, err := w.in.Next()
		for err == nil && (v.IsPush() || v.IsInvalidation()) { // a push
			if v.IsInvalidation() {
				w.invalidated(v)
			} else if string(v.List[1].Text) != membershipChannel { // a change of membership during the exchange is seen in what is read next
				w.handlePush(v)
			}
			v, err = w.in.Next()
		}
		if err != nil {
			return nil, failed(err)
		}
		w.answered = true
		said[i] = v.Clone()
	}
	// After a subscription, a push may arrive at any time.
	if kind, some := w.in.Buffered(); some && kind != '>' {
		return nil, errUnasked
	}
	return said, nil
}
