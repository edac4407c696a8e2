package etcdstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// examine asks all members about themselves at once.
func (s *link) examine(ctx context.Context) *Cluster {
	ctx, cancel := context.WithTimeout(ctx, min(s.o.Timeout, 2*tryTime))
	defer cancel()
	c := &Cluster{Members: make([]Member, len(s.members.list))}
	var group sync.WaitGroup
	for i, e := range s.members.list {
		group.Go(func() { c.Members[i] = e.status(ctx, s.o) })
	}
	group.Wait()
	for i, m := range c.Members {
		s.members.list[i].learner.Store(m.Learner)
		s.members.list[i].answers.Store(m.Err == nil)
	}
	if !slices.ContainsFunc(c.Members, func(m Member) bool { return m.Err == nil }) {
		return c
	}
	_, _ = s.members.run(ctx, func(ctx context.Context, client *client) error {
		r, err := client.MemberList(ctx)
		if err != nil {
			return err
		}
		c.Voters = 0
		for _, m := range r.Members {
			if !m.IsLearner {
				c.Voters++
			}
		}
		return nil
	})
	c.Members, c.alike = distinct(c.Members), alike(c.Members)
	return c
}

// distinct returns members without those that another endpoint leads to as well.
func distinct(members []Member) []Member {
	var all []Member
	for _, m := range members {
		same := func(o Member) bool { return o.Err == nil && o.ClusterID == m.ClusterID && o.ID == m.ID }
		if m.Err != nil || !slices.ContainsFunc(all, same) {
			all = append(all, m)
		}
	}
	return all
}

// clones returns why the members that answer are not of one cluster although the IDs of their
// clusters are equal, as they are of servers that were set up in the same way. One of them has
// granted the lease with that ID, so all members of its cluster know it.
func (s *link) clones(ctx context.Context, id clientv3.LeaseID) string {
	var knows, other atomic.Pointer[member]
	var group sync.WaitGroup
	for _, e := range s.members.list {
		if e.learner.Load() || !e.answers.Load() {
			continue
		}
		group.Go(func() {
			switch known, err := e.knows(ctx, s.o, s.layout.floor(), id); {
			case err != nil:
			case known:
				knows.Store(e)
			default:
				other.Store(e)
			}
		})
	}
	group.Wait()
	one, two := knows.Load(), other.Load()
	if one == nil || two == nil {
		return ""
	}
	return twoClusters(one.endpoint, two.endpoint, "one does not know a lease that the other one has granted")
}

// knows reports whether a lease is there that was granted before. key is one that may be read. A member
// that cannot agree with a majority doesn't know: a leader that was cut off answers as if it were still
// the leader.
func (e *member) knows(ctx context.Context, o Options, key string, id clientv3.LeaseID) (known bool, err error) {
	err = e.try(ctx, o, tryTime, func(ctx context.Context, c *client) error {
		if _, err := c.Get(ctx, key); err != nil {
			return err
		}
		r, err := c.TimeToLive(ctx, id)
		known = err == nil && r.TTL >= 0
		return err
	})
	if isGone(err) {
		err = nil
	}
	return known, err
}

// status asks a member about itself.
func (e *member) status(ctx context.Context, o Options) Member {
	m := Member{Endpoint: e.endpoint}
	start := time.Now()
	var r *etcdserverpb.StatusResponse
	m.Err = e.try(ctx, o, 2*tryTime, func(ctx context.Context, c *client) (err error) {
		// The library would make a connection for it.
		r, err = etcdserverpb.NewMaintenanceClient(c.ActiveConnection()).Status(ctx, &etcdserverpb.StatusRequest{})
		return err
	})
	m.Took = time.Since(start)
	if m.Err == nil {
		m.ID, m.Leader, m.ClusterID = r.Header.MemberId, r.Leader, r.Header.ClusterId
		m.Version, m.Learner = r.Version, r.IsLearner
		m.Revision, m.Agreed, m.DBSize, m.Errors = r.Header.Revision, r.RaftIndex, r.DbSize, r.Errors
		m.Proxy = e.isProxy(ctx, o)
	}
	return m
}

// isProxy reports whether the endpoint is known to be etcd's grpc-proxy. Asked to keep a lease alive that
// there never was, a member answers that it has no time left. The proxy asks how long it lasts, and so
// answers with a negative time.
func (e *member) isProxy(ctx context.Context, o Options) (is bool) {
	if e.direct.Load() {
		return false
	}
	err := e.try(ctx, o, 2*tryTime, func(ctx context.Context, c *client) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := etcdserverpb.NewLeaseClient(c.ActiveConnection()).LeaseKeepAlive(ctx)
		if err == nil {
			err = stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: rand.Int64()})
		}
		if err != nil {
			return err
		}
		r, err := stream.Recv()
		is = err == nil && r.TTL < 0
		return err
	})
	if err == nil && !is {
		e.direct.Store(true)
	}
	return is
}
