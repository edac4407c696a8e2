package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// link is the connection to a cluster, and what it has said.
type link struct {
	o        Options
	members  *members
	layout   layout
	clock    clock.Clock
	replaced replaced
	floor    fence.Token
	// lookAfter is how long a waiter trusts its inbox alone.
	lookAfter time.Duration
	// unchecked is set if the store logs in, and the cluster would not check the user's rights to
	// what is in nested transactions.
	unchecked atomic.Bool
}

const defaultLookAfter = 100 * time.Millisecond

// commit runs t. Whatever its result, it goes through the leader. ambiguous is set if a try
// failed and may take effect later. The error is a quarantineError if the answer is from
// other data than before; the transaction then has had its effect.
func (s *link) commit(ctx context.Context, t txn) (r *clientv3.TxnResponse, ambiguous bool, err error) {
	var least int64
	r, ambiguous, err = s.send(ctx, t, func() { least = s.replaced.before() })
	if err != nil {
		return nil, ambiguous, err
	}
	return r, ambiguous, s.replaced.observe(r.Header, least, s.clock.Now())
}

// send sends t to one member after another, and calls begin before each try.
func (s *link) send(ctx context.Context, t txn, begin func()) (r *clientv3.TxnResponse, ambiguous bool, err error) {
	request := &etcdserverpb.TxnRequest{Compare: t.ifs, Success: t.then, Failure: t.els}
	ambiguous, err = s.members.run(ctx, func(ctx context.Context, c *client) error {
		begin()
		answer, err := etcdserverpb.NewKVClient(c.ActiveConnection()).Txn(ctx, request, callOptions...)
		r = (*clientv3.TxnResponse)(answer)
		return clientv3.ContextError(ctx, err)
	})
	return r, ambiguous, err
}

// glance reads at one member, which asks no other one. What it answers has been so, and may not be so
// any more. r is nil if the member doesn't know the revision least yet, or has other data.
func (s *link) glance(ctx context.Context, least int64, reads ...operation) (r *clientv3.TxnResponse, err error) {
	for _, read := range reads {
		read.GetRequestRange().Serializable = true
	}
	r, _, err = s.send(ctx, txn{then: reads}, func() {})
	if err != nil || r.Header.Revision < least || !s.replaced.has(r.Header.ClusterId) {
		return nil, err
	}
	return r, nil
}

// callOptions are those of the library's own calls.
var callOptions = []grpc.CallOption{
	grpc.WaitForReady(true),
	grpc.MaxCallSendMsgSize(2 << 20),
	grpc.MaxCallRecvMsgSize(math.MaxInt32),
}

// keepAlive renews leases. It returns the new TTL of each lease that still exists.
func (s *link) keepAlive(ctx context.Context, ids []clientv3.LeaseID) (left map[clientv3.LeaseID]int64, err error) {
	_, err = s.members.run(ctx, func(ctx context.Context, c *client) (err error) {
		left, err = c.keepAlive(ctx, ids)
		return err
	})
	return left, err
}

// left asks how long the lease of a place can still last. It is a millisecond if the lease is
// gone, since the place is about to go, and negative if the place has none.
func (s *link) left(ctx context.Context, e entry) (time.Duration, error) {
	if e.lease == clientv3.NoLease {
		return -1, nil
	}
	var d time.Duration
	_, err := s.members.run(ctx, func(ctx context.Context, c *client) error {
		r, err := c.TimeToLive(ctx, e.lease)
		if err != nil {
			return err
		}
		// Seconds are rounded down.
		d = max(time.Millisecond, time.Duration(min(r.TTL+1, r.GrantedTTL))*time.Second)
		return nil
	})
	if isGone(err) {
		return time.Millisecond, nil
	}
	return d, err
}

// find reads the place of an owner that has the lock, with a lease that nobody has broken.
func (s *link) find(ctx context.Context, of store.Lease) (entry, error) {
	what := reading{name: of.Name}
	if of.Kind.IsMutex() {
		what.most = 1
	}
	v, err := s.read(ctx, what)
	if v.several() && v.more > 0 { // leases from before Resize
		v, err = s.read(ctx, reading{name: of.Name})
	}
	if v == nil {
		return entry{}, err
	}
	if e, ok := v.held(of.Owner); ok && !e.Broken {
		return e, nil
	}
	return entry{}, store.ErrNotHeld
}

// agreeOnFloor returns the smallest token, which the first store with a floor has fixed.
func (s *link) agreeOnFloor(ctx context.Context) (fence.Token, error) {
	key := s.layout.floor()
	t := txn{ifs: []condition{absent(key)}, els: []operation{get(key)}}
	if s.o.Floor != 0 {
		t.then = []operation{put(key, fmt.Sprint(uint64(s.o.Floor)), clientv3.NoLease)}
	}
	r, _, err := s.commit(ctx, t)
	if err != nil || r.Succeeded {
		return s.o.Floor, err
	}
	var floor fence.Token
	if kvs := r.Responses[0].GetResponseRange().Kvs; len(kvs) == 1 {
		if _, err := fmt.Sscan(string(kvs[0].Value), (*uint64)(&floor)); err != nil {
			return 0, fmt.Errorf("key %q: %w", key, err)
		}
	}
	if s.o.Floor != 0 && s.o.Floor != floor {
		return 0, fmt.Errorf("%w: Floor %v: the floor of the locks under %q is %v", store.ErrInvalid, s.o.Floor, s.o.Prefix, floor)
	}
	return floor, nil
}

// errBroken is the result of a request for a lease of an owner whose lease was broken.
var errBroken = errors.New("the lease of the owner was broken")

// refused returns the error of an attempt that failed.
func (s *link) refused(ctx context.Context, op, name string, ambiguous bool, err error) error {
	var q *quarantineError
	if errors.As(err, &q) {
		return q.of(op, name, s.members.String())
	}
	return s.failed(ctx, op, name, ambiguous, err)
}

// failed turns err into the error that the caller of a method gets. ambiguous is set if the
// request may have had an effect.
func (s *link) failed(ctx context.Context, op, name string, ambiguous bool, err error) error {
	var done *store.QuorumError
	if errors.As(err, &done) || errors.Is(err, store.ErrNotHeld) || errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrKindMismatch) {
		return err
	}
	if err == errBroken {
		return store.BrokenError(op, name)
	}
	what := op
	if name != "" {
		what = fmt.Sprintf("%s %q", op, name)
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), store.ErrTimeLimit) {
		return fmt.Errorf("%s in %s: %w", what, s.members, ctx.Err())
	}
	n := store.NodeOutcome{Node: s.members.String()}
	var tries *triesError
	if errors.As(err, &tries) {
		n.Node, n.Outcome, n.Err = "etcd", tries.outcome(), err // it names the members
	} else {
		f := faultOf(err)
		n.Outcome, n.Err = f.outcome, f.explain(err)
	}
	if ambiguous && (n.Outcome == store.Refused || n.Outcome == store.Unsettled) {
		n.Outcome = store.TimedOut // the outcome for errors that leave the result unknown
	}
	return &store.QuorumError{Op: op, Name: name, Store: "etcd", Need: 1, Nodes: []store.NodeOutcome{n}}
}
