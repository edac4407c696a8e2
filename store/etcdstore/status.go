package etcdstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
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
	return c
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
	}
	return m
}
