//go:build mutants

package sim

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/holds"
)

// The judge notices a crowd that is not notified of its losses, or not before others can have
// the lock.
func TestCrowdsAreNotified(t *testing.T) {
	for name, mech := range map[string]*bool{"loss-told": holds.Mechanisms["loss-told"], "notice": leasehold.Mechanisms["notice"]} {
		t.Run(name, func(t *testing.T) {
			*mech = false
			defer func() { *mech = true }()
			seen(t, func(seed uint64) Script { return crowded(seed, crowdReads, 20) }, Shipped(), []string{Exclusion, ToldLate})
		})
	}
}
