package redisstore

import (
	"context"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/internal/quorum/driver"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/membership"
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
	w, err := n.s.topology.reach(n)
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

// setDownLocked refuses calls for the node until the pause is over. If an answer was
// late, waited is how long the client waited for it.
func (n *node) setDownLocked(err error, waited, pause time.Duration) {
	if n.down == nil && !n.closed {
		n.log.Warn("node cannot be used", "err", err)
	}
	outcome, err := membership.Classify(err, waited)
	n.down = &driver.Refusal{Outcome: outcome, Err: err}
	n.retryAt = time.Now().Add(pause)
	n.scheduleResendLocked(time.Now())
}

// open connects to host and calls greet before the connection is used. The connection
// ends with the node. ConnectTimeout bounds all of it.
func (n *node) open(ctx context.Context, host string, greet func(context.Context, *wire) error) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, n.s.o.ConnectTimeout)
	defer cancel()
	conn, err := n.dial(ctx, host)
	if err != nil {
		return nil, err
	}
	w := n.newWire(host, conn)
	w.forget = context.AfterFunc(n.ctx, func() { conn.Close() })
	deadline, _ := ctx.Deadline()
	conn.SetDeadline(deadline)
	if err = greet(ctx, w); err == nil {
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

// newWire returns a wire over a connection.
func (n *node) newWire(host string, conn net.Conn) *wire {
	w := &wire{n: n}
	w.Attach(host, conn, w)
	w.Pushed = func(v resp.Value) {
		switch {
		case v.IsInvalidation():
			w.invalidated(v)
		case string(v.List[1].Text) != membership.Channel: // a change of membership is seen in what is read next
			w.handlePush(v)
		}
	}
	return w
}

func (n *node) dial(ctx context.Context, host string) (net.Conn, error) {
	a := n.addr
	a.Host = host
	return conn.Dial(ctx, a, &n.s.o)
}

// greet runs the exchange that begins a connection.
func (n *node) greet(ctx context.Context, w *wire) error {
	hello, err := n.s.o.Login(ctx, n.addr)
	if err != nil {
		return err
	}
	must := len(hello)
	hello = append(hello, resp.Command("HELLO", "3"), resp.Command("CLIENT", "SETNAME", "leasehold"))
	tracks := n.s.guarded.Load() && marksLooked
	if tracks { // before the identity is read, so that no replacement goes unnoticed
		hello = append(hello, membership.TrackCommand)
	}
	hello = append(hello, identityCommand.Bytes, settingsCommand.Bytes, timeCommand.Bytes)
	sent := n.s.o.Clock.Now()
	said, err := w.Exchange(hello...)
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
	if tracks && said[must].Kind != '-' && said[must+2].Kind == '-' {
		n.log.Warn("cannot subscribe to changes of the server's data; a replacement is noticed only when the client reconnects", "err", said[must+2].String())
	}
	is := said[len(said)-3:]
	if err := n.identify(is[0], is[1]); err != nil {
		return err
	}
	n.clockSaid(is[2], sent, received)
	w.run = n.runOf()
	if err := n.s.topology.settled(n, w); err != nil {
		return err
	}
	if err := n.learn(w); err != nil {
		return err
	}
	if n.s.guarded.Load() && marksLooked {
		if err := n.arrive(w); err != nil {
			return err
		}
	}
	return n.s.topology.listen(n, w, said[must])
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
	id := membership.ParseIdentity(info, fsync)
	if id.Loading {
		return resp.ErrorOf(resp.Value{Text: []byte("LOADING the server is not up yet")})
	}
	if err := n.s.topology.fit(n, id); err != nil {
		return err
	}
	n.mu.Lock()
	n.server = id
	n.mu.Unlock()
	return n.s.servers.Vet(n.index, n.addr.Host, id)
}

// learn loads all scripts before the first call by hash. A script that had to be sent
// again as text would delay everything that is enqueued behind it. An error reply is
// ignored here: callers of the script will get it too.
func (n *node) learn(w *wire) error {
	lessons := make([][]byte, len(script.All))
	for i, s := range script.All {
		lessons[i] = s.Lesson
	}
	_, err := w.Exchange(lessons...)
	return err
}

// runOf returns the beginning of the server's run ID; empty if it is not known.
func (n *node) runOf() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.server.RunID) < script.RunPrint {
		return ""
	}
	return n.server.RunID[:script.RunPrint]
}
