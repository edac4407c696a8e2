package etcdstore

import (
	"context"
	"slices"
	"sync"
	"time"

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
	}
	_, _ = s.members.run(ctx, func(ctx context.Context, client *clientv3.Client) error {
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
	c.Members = slices.CompactFunc(c.Members, func(a, b Member) bool { return a.Err == nil && b.Err == nil && a.ID == b.ID })
	return c
}

// status asks a member about itself.
func (e *member) status(ctx context.Context, o Options) Member {
	m := Member{Endpoint: e.endpoint}
	start := time.Now()
	var r *clientv3.StatusResponse
	m.Err = e.try(ctx, o, 2*tryTime, func(ctx context.Context, c *clientv3.Client) (err error) {
		r, err = c.Status(ctx, e.endpoint)
		return err
	})
	m.Took = time.Since(start)
	if m.Err == nil {
		m.ID, m.Leader, m.Version, m.Learner = r.Header.MemberId, r.Leader, r.Version, r.IsLearner
		m.Revision, m.Agreed, m.DBSize, m.Errors = r.Header.Revision, r.RaftIndex, r.DbSize, r.Errors
	}
	return m
}
