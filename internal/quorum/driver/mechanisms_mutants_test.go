//go:build mutants

package driver

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Without the mechanisms, the helpers of the tests beside return what those tests do not want.
func TestMechanismsAreNeeded(t *testing.T) {
	defer func() { declineUnwanted, undoOwn, discountEach, uncountedRenewals = true, true, true, true }()
	declineUnwanted, undoOwn, discountEach, uncountedRenewals = false, false, false, false
	if got := latePushes(t, grantLate, answered, nil); len(got) != 0 {
		t.Errorf("the node is sent %q, want nothing without the mechanism", got)
	}
	r := store.Lease{Name: "a", Owner: "deploy", Attempt: "second", TTL: time.Minute}
	if q := cleanedUp(t, r); q.Undo {
		t.Errorf("the node is sent %+v, want no undo without the mechanism", q)
	}
	if out := oneJumpsAfterTheOther(); out != 0 {
		t.Errorf("%d nodes are discounted, want none without the mechanism: most of them jumped", out)
	}
	discountEach = true
	if _, renewed, _ := jumped(t, false, true); renewed != nil {
		t.Errorf("a lease that a node got after its clock jumped: %v, want it renewed without the mechanism", renewed)
	}
}
