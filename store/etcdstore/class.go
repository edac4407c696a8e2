package etcdstore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// examineEvery is how often the cluster is asked about itself.
const examineEvery = 30 * time.Second

// examineAgain asks the cluster about itself, in the background, if that was not done for
// some time. The caller is counted at the gate.
func (s *Store) examineAgain(ctx context.Context) {
	if !s.due(examineEvery) {
		return
	}
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		s.note(s.examine(context.WithoutCancel(ctx)))
	}()
}

// examineNow asks the cluster about itself, unless that was done in the last second.
func (s *Store) examineNow(ctx context.Context) {
	if s.due(time.Second) {
		s.note(s.examine(ctx))
	}
}

func (s *Store) due(every time.Duration) bool {
	now, last := int64(s.clock.Now()), s.asked.Load()
	return now-last >= int64(every) && s.asked.CompareAndSwap(last, now)
}

// judged is a cluster and the class that it gives, which each request asks for.
type judged struct {
	*Cluster
	class store.Class
}

func (s *Store) note(c *Cluster) {
	s.replaced.divided(c.split())
	s.unchecked.Store(s.o.logsIn() && !c.checksNested())
	is := &judged{c, c.Class()}
	was := s.cluster.Swap(is)
	if was != nil && was.class != is.class {
		s.o.Logger.Warn("the class of the etcd cluster has changed", "was", was.class, "is", is.class, "why", c.Why())
	}
}
