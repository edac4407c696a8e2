package etcdstore

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold-dev/leasehold/store"
)

// If an earlier try may have had an effect, the outcome is unknown, whatever the last one says.
func TestDoubtfulOutcomeIsAmbiguous(t *testing.T) {
	o, err := Options{}.checked()
	if err != nil {
		t.Fatal(err)
	}
	s := newEngine([]string{"a:1"}, o)
	defer s.Close()
	for _, last := range []error{rpctypes.ErrNoLeader, rpctypes.ErrLeaderChanged, rpctypes.ErrNoSpace, rpctypes.ErrTimeout, rpctypes.ErrPermissionDenied} {
		if err := s.failed(t.Context(), "acquire", "a", true, last); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("%v does not match store.ErrAmbiguous", err)
		}
	}
	if err := s.failed(t.Context(), "acquire", "a", false, rpctypes.ErrPermissionDenied); errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("%v matches store.ErrAmbiguous", err)
	}
}

// While a leader hands over the lead, members drop requests. Another try helps, and waiters wait on.
func TestDroppedProposalIsTriedAgain(t *testing.T) {
	f := faultOf(status.Error(codes.Unknown, "raft proposal dropped"))
	if !f.again || f.certain || f.outcome != store.Unsettled {
		t.Errorf("%+v, want an unsettled outcome and another try", f)
	}
}

// A member that was removed from the cluster answers so until it ends. Another one is asked.
func TestRemovedMemberIsLeft(t *testing.T) {
	f := faultOf(status.Error(codes.Unknown, "raft: stopped"))
	if !f.again || f.certain || f.outcome != store.Unreachable || f.advice == "" {
		t.Errorf("%+v, want that the member cannot be reached, another try, and advice", f)
	}
}
