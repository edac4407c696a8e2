package redis

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// node is one Redis server: one connection, and one goroutine that writes to
// it what waits in line. Nothing else talks to the server, so everything
// reaches it in the order it was put.
type node struct {
	s     *Store
	index int
	addr  string
	opt   rueidis.ClientOption
	log   *slog.Logger
	line  line

	// Of the sending goroutine alone.
	client   rueidis.Client
	suspect  bool      // the connection may be broken
	used     time.Time // when it last worked
	identity uint64    // the dial whose server is identified and knows the scripts
	failures int
	retryAt  time.Time
	lastErr  error

	dials  atomic.Uint64 // connections made so far
	conn   atomic.Pointer[net.Conn]
	ctx    context.Context // ends when the store is closed for good
	cancel context.CancelFunc
	done   chan struct{} // closed when the sending goroutine has ended
}

// maxIdle is how long a connection may be unused before it is tried first: a
// server or a firewall may have dropped it meanwhile.
const maxIdle = time.Second

func newNode(index int, a address, s *Store) *node {
	n := &node{s: s, index: index, addr: a.host, log: s.o.Logger.With("node", a.host), done: make(chan struct{})}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.line.init()
	n.opt = rueidis.ClientOption{
		InitAddress: []string{a.host}, Username: a.username, Password: a.password, SelectDB: a.db,
		ClientName:        "leasehold",
		ForceSingleClient: true,
		// A retried SET is a second SET: what may have been applied is not
		// sent again behind our back.
		DisableRetry: true,
		DisableCache: true,
		// One connection: a release that overtakes its acquire on another one
		// would leave the lock behind.
		PipelineMultiplex: -1,
		// No pings of its own: they would share the connection with the one
		// goroutine that uses it. connect tries an idle one instead.
		Dialer:    net.Dialer{Timeout: s.o.ConnectTimeout, KeepAlive: -1},
		DialCtxFn: n.dial,
	}
	if a.tls {
		n.opt.TLSConfig = s.o.TLS
	}
	go n.send()
	return n
}

// dial is called by rueidis whenever it needs a connection.
func (n *node) dial(ctx context.Context, dst string, d *net.Dialer, t *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	dialer := net.Dialer{Timeout: d.Timeout, KeepAlive: 15 * time.Second}
	var c net.Conn
	var err error
	if t != nil {
		c, err = (&tls.Dialer{NetDialer: &dialer, Config: t}).DialContext(ctx, "tcp", dst)
	} else {
		c, err = dialer.DialContext(ctx, "tcp", dst)
	}
	if err != nil {
		return nil, err
	}
	n.conn.Store(&c)
	n.dials.Add(1)
	return c, nil
}

// connect makes sure of a working connection to an identified server. It is
// cheap while the connection is in use. An error means that nothing was sent.
func (n *node) connect() error {
	if n.client != nil && !n.suspect && time.Since(n.used) < maxIdle {
		return nil
	}
	if time.Now().Before(n.retryAt) {
		return n.lastErr
	}
	err := n.reach()
	if err == nil && n.identity != n.dials.Load() {
		err = n.identify()
	}
	if err != nil {
		n.failures++
		if n.failures == 1 {
			n.log.Warn("node can not be used", "err", err)
		}
		// A node that is down costs its callers nothing but this look at the
		// clock, and is tried again soon.
		n.retryAt = time.Now().Add(min(time.Second, 25*time.Millisecond<<min(n.failures, 6)))
		n.lastErr, n.suspect = err, true
		return err
	}
	if n.failures > 0 {
		n.log.Info("node can be used again")
	}
	n.failures, n.suspect, n.used = 0, false, time.Now()
	return nil
}

// reach tries the connection, and a new one where the first turns out broken.
func (n *node) reach() (err error) {
	if n.client == nil {
		n.client, err = rueidis.NewClient(n.opt)
		return err // the client is there even if it could not connect
	}
	for range 2 {
		ctx, cancel := context.WithTimeout(n.ctx, n.opt.Dialer.Timeout)
		before := n.dials.Load()
		err = n.client.Do(ctx, n.client.B().Ping().Build()).Error()
		cancel()
		if err == nil || before != n.dials.Load() || n.ctx.Err() != nil {
			return err
		}
		if e, answered := rueidis.IsRedisErr(err); answered {
			if isDenied(e.Error()) { // it works, and what is needed may be permitted
				return nil
			}
			return err
		}
	}
	return err
}

// identify asks who answers on the new connection, and prepares the server.
func (n *node) identify() error {
	dials := n.dials.Load()
	ctx, cancel := context.WithTimeout(n.ctx, n.opt.Dialer.Timeout)
	defer cancel()
	info, err := n.client.Do(ctx, n.client.B().Info().Section("server").Build()).ToString()
	if e, ok := rueidis.IsRedisErr(err); ok && isDenied(e.Error()) {
		n.log.Warn("INFO is not permitted: the node can not be told apart from the others", "err", err)
		info, err = "", nil
	}
	if err == nil {
		err = n.s.servers.vet(n, parseIdentity(info), n.s.nodes)
	}
	if err == nil {
		err = n.learn(ctx)
	}
	if err == nil {
		n.identity = dials
	}
	return err
}

// learn has the server know all scripts before the first is called by its
// hash. A script that had to be sent again by its text would run after those
// behind it in line: a release after the acquire that waits for it. An error
// reply is no matter here, whoever calls a script will get it too.
func (n *node) learn(ctx context.Context) error {
	lessons := make([]rueidis.Completed, len(allScripts))
	for i, s := range allScripts {
		lessons[i] = n.build([]string{"EVAL", textOf[string(s)], "0"})
	}
	for _, r := range n.client.DoMulti(ctx, lessons...) {
		if err := r.NonRedisError(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the node: what is still in line is answered as not sent.
func (n *node) close() {
	n.cancel()
	n.line.close()
	if c := n.conn.Load(); c != nil {
		(*c).Close() // a read that waits for a dead node ends now
	}
	<-n.done
	if n.client != nil {
		n.client.Close()
	}
}
