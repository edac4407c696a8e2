package etcdstore

import (
	"context"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// examineEvery is how often the cluster is asked about itself.
const examineEvery = 30 * time.Second

// examineAgain asks the cluster about itself, in the background, if that was not done for
// some time. The caller is counted at the gate.
func (s *core) examineAgain(ctx context.Context) {
	every := examineEvery
	if s.replaced.unread() {
		every = time.Second
	}
	if !s.due(every) {
		return
	}
	s.gate.Stay()
	go func() {
		defer s.gate.Leave()
		ctx := context.WithoutCancel(ctx)
		s.note(s.examine(ctx))
		if err := s.recordTTL(ctx, 0); err != nil {
			s.o.Logger.Warn("cannot read the longest TTL", "err", s.failed(ctx, "examine", "", false, err))
		}
	}()
}

// examineNow asks the cluster about itself, unless that was done in the last second.
func (s *core) examineNow(ctx context.Context) {
	if s.due(time.Second) {
		s.note(s.examine(ctx))
	}
}

func (s *core) due(every time.Duration) bool {
	now, last := int64(s.clock.Now()), s.asked.Load()
	return now-last >= int64(every) && s.asked.CompareAndSwap(last, now)
}

// judged is a cluster and the class that it gives, which each request asks for.
type judged struct {
	*Cluster
	verdict
	// settled is the last verdict that was not pending. Before the first one it is pending as well.
	settled verdict
}

func (s *core) note(c *Cluster) {
	s.replaced.divided(c.split())
	s.unchecked.Store(s.o.logsIn() && !c.checksNested())
	was := s.cluster.Load()
	if was != nil {
		c.recall(was.Cluster)
	}
	is := &judged{Cluster: c, verdict: c.judge()}
	if is.settled = is.verdict; is.pending && was != nil {
		is.settled = was.settled
	}
	s.cluster.Store(is)
	if was != nil && !was.settled.pending && was.settled.class != is.settled.class {
		s.o.Logger.Warn("the class of the etcd cluster has changed", "was", was.settled.class, "is", is.class, "why", is.why)
	}
}

// require returns an error if the store cannot give the class. If that is only not known at present,
// the error is transient.
func (s *core) require(ctx context.Context, op, name string, c store.Class) error {
	if c > s.cluster.Load().class {
		s.examineNow(ctx) // it may have been unknown, or a member may be back
	}
	switch is := s.cluster.Load(); {
	case c <= is.class:
		return nil
	case is.pending:
		why := fmt.Errorf("%v is required, and whether the cluster gives it is not known at present: %s", c, is.why)
		return &store.QuorumError{Op: op, Name: name, Store: "etcd", Need: 1, Nodes: []store.NodeOutcome{{Node: s.members.String(), Outcome: store.Unsettled, Err: why}}}
	default:
		return fmt.Errorf("%w: %v is required, and etcd at %s gives %v: %s", store.ErrUnsupported, c, s.members, is.class, is.why)
	}
}
