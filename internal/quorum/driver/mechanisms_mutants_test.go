//go:build mutants

package driver

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Without the mechanisms the tests above see nodes told what they should not be.
func TestMechanismsAreNeeded(t *testing.T) {
	defer func() { declineUnwanted, undoOwn = true, true }()
	declineUnwanted, undoOwn = false, false
	if got := lateHand(t); len(got) != 0 {
		t.Errorf("the node is told %q", got)
	}
	r := store.Lease{Name: "a", Owner: "deploy", Attempt: "second", TTL: time.Minute}
	if told := cleanedUp(t, r); told.Undo {
		t.Errorf("the node is told %+v", told)
	}
}
