package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/store"
)

// errMoved means that the place was changed by another handle at the same time.
var errMoved = errors.New("the lease was changed by another process at the same time")

// errNewTerm means that the keep-alive does not count, because the leader has changed.
var errNewTerm = errors.New("the leader of the cluster has just changed")

// fault is what an error of a request says.
type fault struct {
	// certain: the request had no effect, and will have none.
	certain bool
	// again: another try, perhaps at another member, can help soon.
	again   bool
	outcome store.Outcome
	advice  string // for people; it may be empty
}

// known are the errors of etcd that need more than their gRPC code says.
var known = map[error]fault{
	rpctypes.ErrLeaseNotFound:                              {certain: true, outcome: store.Refused, advice: "the lease is gone"},
	rpctypes.ErrNoLeader:                                   {again: true, outcome: store.Unsettled, advice: "the member has no leader: most members of the cluster are down or cannot be reached from it"},
	rpctypes.ErrLeaderChanged:                              {again: true, outcome: store.Unsettled},
	rpctypes.ErrNotLeader:                                  {again: true, outcome: store.Unsettled},
	rpctypes.ErrStopped:                                    {again: true, outcome: store.Unreachable},
	rpctypes.ErrTimeout:                                    {again: true, outcome: store.TimedOut},
	rpctypes.ErrTimeoutDueToLeaderFail:                     {again: true, outcome: store.TimedOut},
	rpctypes.ErrTimeoutDueToConnectionLost:                 {again: true, outcome: store.TimedOut},
	rpctypes.ErrTimeoutWaitAppliedIndex:                    {again: true, outcome: store.TimedOut},
	rpctypes.ErrUnhealthy:                                  {again: true, outcome: store.Unsettled},
	rpctypes.ErrTooManyRequests:                            {certain: true, again: true, outcome: store.Refused},
	rpctypes.ErrInvalidAuthToken:                           {certain: true, again: true, outcome: store.Refused, advice: "the login has expired"},
	rpctypes.ErrAuthOldRevision:                            {certain: true, again: true, outcome: store.Refused, advice: "the login has expired"},
	rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner): {certain: true, again: true, outcome: store.Refused, advice: "the member is a learner, which keeps no locks: name the voting members"},
	// A server that runs out of space may have applied the request that it refuses.
	rpctypes.ErrNoSpace:          {outcome: store.Refused, advice: `etcd's database is full: compact and defragment it ("etcdctl compact", "etcdctl defrag"), then "etcdctl alarm disarm"; turn on --auto-compaction-retention`},
	rpctypes.ErrCorrupt:          {outcome: store.Refused, advice: "etcd reports that its data is corrupt"},
	rpctypes.ErrPermissionDenied: {certain: true, outcome: store.Refused, advice: `the user needs the right to read and write all keys that begin with the prefix: "etcdctl role grant-permission ROLE readwrite PREFIX/ --prefix"`},
	rpctypes.ErrUserEmpty:        {certain: true, outcome: store.Refused, advice: "the server asks for a user and a password: write etcd://USER@HOST, with the password in the URL or in ETCD_PASSWORD"},
	rpctypes.ErrAuthFailed:       {certain: true, outcome: store.Refused, advice: "wrong user or password"},
	rpctypes.ErrAuthNotEnabled:   {certain: true, outcome: store.Refused, advice: "the server has no users: leave out user and password"},
}

// dropped is in the text of the error, without a code, of a member that has no leader to pass a
// request to, or is handing over the lead itself.
const dropped = "raft proposal dropped"

// removed is in the text of the error, without a code, of a member that was removed from the cluster,
// before it ends.
const removed = "raft: stopped"

// faultOf says what err means.
func faultOf(err error) fault {
	var unconnected *unconnectedError
	if errors.As(err, &unconnected) {
		return fault{certain: !unconnected.sent, again: true, outcome: store.Unreachable}
	}
	if err == errNewTerm || err == errMoved {
		return fault{again: true, outcome: store.Unsettled}
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault{again: true, outcome: store.TimedOut}
	}
	if f, ok := known[rpctypes.Error(err)]; ok {
		return f
	}
	code := status.Code(err)
	var coded rpctypes.EtcdError
	if errors.As(err, &coded) {
		code = coded.Code()
	}
	switch code {
	case codes.Unknown:
		if strings.Contains(err.Error(), dropped) {
			return fault{again: true, outcome: store.Unsettled, advice: "the cluster has no leader at present, or is changing it"}
		}
		if strings.Contains(err.Error(), removed) {
			return fault{again: true, outcome: store.Unreachable, advice: "the member is ending, or was removed from the cluster: name the endpoints of the present members"}
		}
	case codes.DeadlineExceeded, codes.Canceled:
		return fault{again: true, outcome: store.TimedOut}
	case codes.Unavailable:
		return fault{again: true, outcome: store.Unreachable}
	case codes.Unauthenticated:
		return fault{certain: true, again: true, outcome: store.Refused, advice: "the login has expired"}
	case codes.PermissionDenied:
		return known[rpctypes.ErrPermissionDenied]
	case codes.Unimplemented: // perhaps of a proxy that is in the way to one of the members
		return fault{certain: true, again: true, outcome: store.Refused, advice: "no etcd server of version 3.4 or newer answers there"}
	case codes.InvalidArgument, codes.FailedPrecondition, codes.OutOfRange:
		return fault{certain: true, outcome: store.Refused}
	case codes.Internal, codes.ResourceExhausted, codes.Aborted:
		return fault{again: true, outcome: store.Refused}
	}
	return fault{outcome: store.Refused}
}

// explain returns the error for people.
func (f fault) explain(err error) error {
	var unconnected *unconnectedError
	if errors.As(err, &unconnected) {
		return unconnected // it has advice of its own
	}
	text := store.Excerpt(rpctypes.ErrorDesc(err))
	if f.advice == "" {
		return errors.New(text)
	}
	return fmt.Errorf("%s: %s", f.advice, text)
}
