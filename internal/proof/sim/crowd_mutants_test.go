//go:build mutants

package sim

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
)

// The judge notices a crowd that is not notified of its losses, or not before others can have
// the lock.
func TestCrowdsAreNotified(t *testing.T) {
	for _, name := range []string{"loss-told", "notice"} {
		t.Run(name, func(t *testing.T) {
			mech := leasehold.Mechanisms[name]
			*mech = false
			defer func() { *mech = true }()
			seen(t, func(seed uint64) Script { return crowded(seed, crowdReads, 20) }, Shipped(), []string{Exclusion, ToldLate})
		})
	}
}
