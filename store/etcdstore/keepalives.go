package etcdstore

import (
	"context"
	"fmt"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// client is the library's client of one member, with its streams of keep-alives.
//
// Streams are used again: with a user, the library logs in for each that it opens. A server takes
// about 80 ms of processor time to check a password. A lease with a TTL of 3 s made 11 logins in
// 9 s, and makes 3.
type client struct {
	*clientv3.Client

	mu   sync.Mutex
	idle []*aliveStream
}

type aliveStream struct {
	etcdserverpb.Lease_LeaseKeepAliveClient
	end context.CancelFunc
}

// keepAlive renews leases. It returns the new TTL of each lease that still exists.
func (c *client) keepAlive(ctx context.Context, ids []clientv3.LeaseID) (left map[clientv3.LeaseID]int64, err error) {
	if s := c.takeStream(); s != nil {
		if left, err = c.exchange(ctx, s, ids); err == nil || ctx.Err() != nil {
			return left, err
		}
		// The stream may have ended long ago.
	}
	// The stream outlasts ctx if it can be used again.
	s := &aliveStream{}
	of, end := context.WithCancel(context.WithoutCancel(ctx))
	s.end = end
	stop := context.AfterFunc(ctx, end)
	s.Lease_LeaseKeepAliveClient, err = etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(of)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		end()
		return nil, clientv3.ContextError(ctx, err)
	}
	return c.exchange(ctx, s, ids)
}

// exchange sends a request for each lease and receives all answers. After an error the stream
// is not used again, since answers may still come.
func (c *client) exchange(ctx context.Context, s *aliveStream, ids []clientv3.LeaseID) (left map[clientv3.LeaseID]int64, err error) {
	stop := context.AfterFunc(ctx, s.end)
	defer func() {
		if !stop() && err == nil {
			err = ctx.Err()
		}
		if err == nil {
			c.putStream(s)
		} else {
			s.end()
		}
	}()
	left = make(map[clientv3.LeaseID]int64, len(ids))
	const window = 100 // requests under way
	for n, next := 0, 0; n < len(ids); n++ {
		for ; next < min(len(ids), n+window); next++ {
			if err := s.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(ids[next])}); err != nil {
				return nil, aliveError(ctx, s.why(err))
			}
		}
		r, err := s.Recv()
		if err != nil {
			return nil, aliveError(ctx, err)
		}
		if r.TTL > 0 {
			left[clientv3.LeaseID(r.ID)] = r.TTL
		}
	}
	return left, nil
}

// aliveError returns the error of ctx if that has ended the stream, and otherwise err.
func aliveError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// why returns why a stream was ended by the server: Send only says that it was.
func (s *aliveStream) why(err error) error {
	if _, why := s.Recv(); why != nil {
		return why
	}
	return fmt.Errorf("send: %w", err)
}

// takeStream returns a stream that is not in use, or nil.
func (c *client) takeStream() *aliveStream {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.idle)
	if n == 0 {
		return nil
	}
	s := c.idle[n-1]
	c.idle = c.idle[:n-1]
	return s
}

// mostIdle is how many streams are kept: waiters renew their leases one by one.
const mostIdle = 8

func (c *client) putStream(s *aliveStream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.idle) == mostIdle {
		s.end()
		return
	}
	c.idle = append(c.idle, s)
}

func (c *client) close() {
	for s := c.takeStream(); s != nil; s = c.takeStream() {
		s.end()
	}
	_ = c.Close() // it returns the error of the context that it ended itself
}
