package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Cluster is what the members of a cluster say about themselves.
type Cluster struct {
	// Voters is the number of voting members. It is 0 if no member reported it.
	Voters int
	// Members are those that were asked.
	Members []Member
}

// Member is what one member says about itself.
type Member struct {
	// Endpoint is where it was asked. ID is its number, Leader that of the leader it
	// knows, or 0, and ClusterID that of its cluster.
	Endpoint              string
	ID, Leader, ClusterID uint64
	// Version is that of the server, such as "3.6.15".
	Version string
	Learner bool
	// Revision, DBSize, Took and Errors are for people: the size is in bytes, Took is how
	// long the answer took, and Errors has alarms such as NOSPACE. Agreed is how many
	// entries its log has had.
	Revision int64
	Agreed   uint64
	DBSize   int64
	Took     time.Duration
	Errors   []string
	// Err is why it did not answer, or nil.
	Err error
}

// Class is the strongest guarantee that the cluster gives. c may be nil.
func (c *Cluster) Class() store.Class { return c.judge().class }

// Why returns why the class is below Consensus, and "" if it is not.
func (c *Cluster) Why() string { return c.judge().why }

// recall takes over what was known of members that do not answer now.
func (c *Cluster) recall(was *Cluster) {
	if c.Voters == 0 {
		c.Voters = was.Voters
	}
	for i, m := range c.Members {
		for _, before := range was.Members {
			if m.Err != nil && before.Endpoint == m.Endpoint {
				c.Members[i].ID, c.Members[i].Version, c.Members[i].Learner = before.ID, before.Version, before.Learner
			}
		}
	}
}

// split returns why the endpoints are not the members of one cluster, and "" if nothing shows that.
func (c *Cluster) split() string {
	var first *Member
	for i, m := range c.Members {
		switch {
		case m.Err != nil:
		case first == nil:
			first = &c.Members[i]
		case m.ClusterID != first.ClusterID:
			return fmt.Sprintf("%s and %s belong to different clusters (%x and %x), so a lock would have a holder in each: name the members of one cluster", first.Endpoint, m.Endpoint, first.ClusterID, m.ClusterID)
		}
	}
	return ""
}

// twice returns why two endpoints that lead to one member are refused, or "": servers that were
// set up in the same way have the same IDs, and each is a cluster of its own.
func (c *Cluster) twice() string {
	by := make(map[uint64]string)
	for _, m := range c.Members {
		if other, there := by[m.ID]; m.Err == nil && there {
			return fmt.Sprintf("%s and %s are one member, or clusters of their own with equal IDs, where a lock would have a holder in each: name each member of one cluster once", other, m.Endpoint)
		} else if m.Err == nil {
			by[m.ID] = m.Endpoint
		}
	}
	return ""
}

// verdict is the class that a cluster gives, and why that is below Consensus.
type verdict struct {
	class store.Class
	why   string
	// pending is set if the class is not known at present, and may be higher. class is Efficiency then.
	pending bool
}

func (c *Cluster) judge() verdict {
	if c == nil || c.Voters == 0 {
		return verdict{why: "no member of the cluster has said what the cluster is", pending: true}
	}
	if why := c.split(); why != "" {
		return verdict{why: why}
	}
	known := make(map[uint64]bool) // the voting members whose versions are known
	silent, leader := 0, uint64(0) // members of which nothing is known
	for _, m := range c.Members {
		if m.Err == nil && m.Leader != 0 {
			leader = m.Leader
		}
		switch why := defects(m.Version); {
		case m.Version == "":
			silent++
		case m.Learner:
		case why != "":
			return verdict{why: fmt.Sprintf("%s runs etcd %s, %s", m.Endpoint, m.Version, why)}
		default:
			known[m.ID] = true
		}
	}
	switch {
	case 2*len(known) <= c.Voters:
		return verdict{
			why:     fmt.Sprintf("the versions of only %d of the %d voting members are known: name the endpoints of all", len(known), c.Voters),
			pending: 2*(len(known)+silent) > c.Voters,
		}
	case c.Voters < 3:
		return verdict{class: store.CrashSafe, why: fmt.Sprintf("the cluster has %d voting members: it takes 3 to agree without one of them", c.Voters)}
	case len(known) >= c.Voters: // whichever of them leads
	case leader == 0:
		return verdict{why: "the cluster has no leader at present", pending: true}
	case !known[leader]:
		return verdict{why: "the version of the leader is not known: name the endpoints of all voting members", pending: silent > 0}
	}
	return verdict{class: store.Consensus}
}

// firsts are the first versions of etcd 3 with a change, by their minor numbers.
type firsts []struct{ minor, patch int }

// fixed are those without two defects: a leader that was cut off and is replaced could still
// revoke leases that live (#15247), and renewals could be answered for leases that were
// revoked. The store itself notices the second one.
var fixed = firsts{{4, 31}, {5, 13}}

// checked are those that check a user's rights to what is in nested transactions
// (CVE-2026-33343).
var checked = firsts{{4, 42}, {5, 28}, {6, 9}}

// lacks reports whether a version lacks the change, or may lack it. first is the first version
// with the change to which it can be upgraded, or empty if that is not known.
func (f firsts) lacks(version string) (first string, lacks bool) {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return "", true
	} else if major != 3 {
		return "", false // there is none yet
	}
	for _, is := range f {
		if minor < is.minor || minor == is.minor && patch < is.patch {
			return fmt.Sprintf("3.%d.%d", is.minor, is.patch), true
		}
		if minor == is.minor {
			return "", false
		}
	}
	return "", false
}

// defects says what makes a version unfit to rule out two holders, or returns "".
func defects(version string) string {
	switch first, lacks := fixed.lacks(version); {
	case !lacks:
		return ""
	case first == "":
		return "a version that cannot be judged"
	default:
		return "in which a leader that has been replaced can revoke the lease of a living holder; that is mended in " + first
	}
}

// checksNested reports whether all members are known to check a user's rights to what is in nested
// transactions.
func (c *Cluster) checksNested() bool {
	return !slices.ContainsFunc(c.Members, func(m Member) bool { _, lacks := checked.lacks(m.Version); return lacks })
}

// examineEvery is how often the cluster is asked about itself.
const examineEvery = 30 * time.Second

// examineAgain asks the cluster about itself, in the background, if that was not done for
// some time. The caller is counted at the gate.
func (s *engine) examineAgain(ctx context.Context) {
	every := examineEvery
	if s.replaced.unread() {
		every = time.Second
	}
	if !s.due(every) {
		return
	}
	s.gate.Go(func() {
		ctx := context.WithoutCancel(ctx)
		s.note(s.examine(ctx))
		if err := s.recordTTL(ctx, 0); err != nil {
			s.o.Logger.Warn("cannot read the longest TTL", "err", s.failed(ctx, "examine", "", false, err))
		}
	})
}

// examineNow asks the cluster about itself, unless that was done in the last second.
func (s *engine) examineNow(ctx context.Context) {
	if s.due(time.Second) {
		s.note(s.examine(ctx))
	}
}

func (s *engine) due(every time.Duration) bool {
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

func (s *engine) note(c *Cluster) {
	s.replaced.divided(c.split())
	was := s.cluster.Load()
	if was != nil {
		c.recall(was.Cluster)
	}
	s.unchecked.Store(s.o.logsIn() && !c.checksNested())
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
func (s *engine) require(ctx context.Context, op, name string, c store.Class) error {
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
