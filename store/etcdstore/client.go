package etcdstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"

	"github.com/leasehold-dev/leasehold/store"
)

// member is one endpoint of a cluster, with a client of its own.
type member struct {
	endpoint string
	ctx      context.Context // ends when the member is closed
	end      context.CancelFunc

	mu     sync.Mutex
	client *client // nil until it is needed
	login  *login  // nil unless the client is being made
}

// login is an attempt to make the client of a member, for all that wait for it.
type login struct {
	done   chan struct{} // closed when the rest is set
	client *client
	err    error
}

func newMember(endpoint string) *member {
	e := &member{endpoint: endpoint}
	e.ctx, e.end = context.WithCancel(context.Background())
	return e
}

// try calls f. If there is no connection, it says why at once, so that another member can be
// asked.
func (e *member) try(ctx context.Context, o Options, limit time.Duration, f func(ctx context.Context, c *client) error) error {
	c, err := e.connect(ctx, o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn := c.ActiveConnection()
	if err := connected(ctx, conn); err != nil {
		return err
	}
	err = f(ctx, c)
	if errors.Is(err, context.DeadlineExceeded) && conn.GetState() == connectivity.TransientFailure {
		return &unconnectedError{sent: true, why: whyUnconnected(ctx, conn)}
	}
	return err
}

// connected waits while the connection is made. It returns an *unconnectedError if that has
// failed: requests of the library would wait for the next try, and would not say why.
func connected(ctx context.Context, conn *grpc.ClientConn) error {
	for {
		switch is := conn.GetState(); is {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure:
			if why := whyUnconnected(ctx, conn); why != nil {
				return &unconnectedError{why: why}
			}
			return nil // it has been made meanwhile
		default:
			conn.Connect()
			if !conn.WaitForStateChange(ctx, is) {
				return ctx.Err()
			}
		}
	}
}

// whyUnconnected returns why the last try to connect failed. gRPC says that only to requests
// that do not wait for a connection.
func whyUnconnected(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTime)
	defer cancel()
	_, err := etcdserverpb.NewMaintenanceClient(conn).Status(ctx, &etcdserverpb.StatusRequest{})
	return err
}

// unconnectedError is the error of a request for which there was no connection.
type unconnectedError struct {
	sent bool // it may have been sent, over an earlier connection
	why  error
}

func (e *unconnectedError) Error() string {
	if e.why == nil {
		return "cannot connect"
	}
	return "cannot connect: " + store.Excerpt(rpctypes.ErrorDesc(e.why))
}

func (e *unconnectedError) Unwrap() error { return e.why }

// mostBackoff is the longest time between two tries to connect. By default gRPC waits up to two
// minutes, in which leases end although the server is back.
const mostBackoff = time.Second

// connect returns the client of the member. It blocks only to log in. That goes on if ctx ends: a
// member that does not answer holds nobody up for longer because others wait for it, too.
func (e *member) connect(ctx context.Context, o Options) (*client, error) {
	e.mu.Lock()
	if e.ctx.Err() != nil || e.client != nil {
		defer e.mu.Unlock()
		if e.client == nil {
			return nil, store.ErrClosed
		}
		return e.client, nil
	}
	l := e.login
	if l == nil {
		l = &login{done: make(chan struct{})}
		e.login = l
		go e.logIn(o, l)
	}
	e.mu.Unlock()
	select {
	case <-l.done:
		return l.client, l.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// logIn makes the client.
func (e *member) logIn(o Options, l *login) {
	c, err := e.makeClient(o)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.login = nil
	if l.err = err; err == nil {
		l.client = &client{c, make(chan *aliveStream, mostIdle)}
		e.client = l.client
	}
	close(l.done)
}

func (e *member) makeClient(o Options) (*clientv3.Client, error) {
	if o.Username != "" {
		if err := e.probe(o); err != nil {
			return nil, err
		}
	}
	return clientv3.New(e.config(o, o.Username, o.Password))
}

// probe connects without a login. The library waits for a connection to log in, and does not say
// why there is none.
func (e *member) probe(o Options) error {
	c, err := clientv3.New(e.config(o, "", ""))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(e.ctx, tryTime)
	defer cancel()
	err = connected(ctx, c.ActiveConnection())
	_ = c.Close() // it returns the error of the context that it ended itself
	return err
}

func (e *member) config(o Options, username, password string) clientv3.Config {
	reconnect := grpc.WithConnectParams(grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: mostBackoff / 10, Multiplier: 1.6, Jitter: 0.2, MaxDelay: mostBackoff},
		MinConnectTimeout: max(o.Timeout, DefaultTimeout),
	})
	return clientv3.Config{
		Context:              e.ctx,
		Endpoints:            []string{e.endpoint},
		DialTimeout:          max(tryTime, o.Timeout/2), // for the login, which takes servers long
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 3 * time.Second,
		// The store asks another member instead. The second try is for a login that has
		// expired.
		MaxUnaryRetries:    2,
		BackoffWaitBetween: time.Millisecond,
		Username:           username,
		Password:           password,
		TLS:                o.TLS,
		DialOptions:        append([]grpc.DialOption{reconnect}, o.DialOptions...),
		Logger:             zap.NewNop(),
	}
}

func (e *member) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.end()
	if l := e.login; l != nil {
		e.mu.Unlock()
		<-l.done
		e.mu.Lock()
	}
	if e.client != nil {
		e.client.close()
		e.client = nil
	}
}

// client is the library's client of one member, with its streams of keep-alives.
//
// Streams are used again: with a user, the library logs in for each that it opens. A server takes
// about 80 ms of processor time to check a password. A lease with a TTL of 3 s made 11 logins in
// 9 s, and makes 3.
type client struct {
	*clientv3.Client
	idle chan *aliveStream
}

type aliveStream struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	of  context.Context // outlasts the request, so that the stream can be used again
	end context.CancelFunc
}

// keepAlive renews leases. It returns the new TTL of each lease that still exists.
func (c *client) keepAlive(ctx context.Context, ids []clientv3.LeaseID) (left map[clientv3.LeaseID]int64, err error) {
	for s := c.takeStream(); s != nil; s = c.takeStream() {
		if left, err = c.exchange(ctx, s, ids); err == nil || ctx.Err() != nil {
			return left, err
		}
		// The stream may have ended long ago.
	}
	of, end := context.WithCancel(context.WithoutCancel(ctx))
	return c.exchange(ctx, &aliveStream{of: of, end: end}, ids)
}

// exchange sends a request for each lease and receives all answers. After an error the stream
// is not used again, since answers may still come.
func (c *client) exchange(ctx context.Context, s *aliveStream, ids []clientv3.LeaseID) (left map[clientv3.LeaseID]int64, err error) {
	stop := context.AfterFunc(ctx, s.end)
	defer func() {
		if !stop() {
			err = ctx.Err()
		}
		if err == nil {
			c.putStream(s)
		} else {
			s.end()
		}
	}()
	if s.Lease_LeaseKeepAliveClient == nil {
		if s.Lease_LeaseKeepAliveClient, err = etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(s.of); err != nil {
			return nil, err
		}
	}
	left = make(map[clientv3.LeaseID]int64, len(ids))
	const window = 100 // requests under way
	for n, next := 0, 0; n < len(ids); n++ {
		for ; next < min(len(ids), n+window) && s.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(ids[next])}) == nil; next++ {
		}
		r, err := s.Recv() // it says why Send has failed
		if err != nil {
			return nil, err
		}
		if r.TTL > 0 {
			left[clientv3.LeaseID(r.ID)] = r.TTL
		}
	}
	return left, nil
}

// mostIdle is how many streams are kept: waiters renew their leases one by one.
const mostIdle = 8

// takeStream returns a stream that is not in use, or nil.
func (c *client) takeStream() *aliveStream {
	select {
	case s := <-c.idle:
		return s
	default:
		return nil
	}
}

func (c *client) putStream(s *aliveStream) {
	select {
	case c.idle <- s:
	default:
		s.end()
	}
}

func (c *client) close() {
	for s := c.takeStream(); s != nil; s = c.takeStream() {
		s.end()
	}
	_ = c.Close() // it returns the error of the context that it ended itself
}
