//go:build mutants

package driver

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Without the mechanisms, the tests above see wrong messages to nodes.
func TestMechanismsAreNeeded(t *testing.T) {
	defer func() { declineUnwanted, undoOwn, discountEach = true, true, true }()
	declineUnwanted, undoOwn, discountEach = false, false, false
	if got := lateHand(t); len(got) != 0 {
		t.Errorf("the node is told %q", got)
	}
	r := store.Lease{Name: "a", Owner: "deploy", Attempt: "second", TTL: time.Minute}
	if told := cleanedUp(t, r); told.Undo {
		t.Errorf("the node is told %+v", told)
	}
	if out := oneJumpsAfterTheOther(); out != 0 {
		t.Errorf("%d nodes are discounted although most of them jumped", out)
	}
}
