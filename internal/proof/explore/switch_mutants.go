//go:build mutants

package explore

import (
	"maps"

	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// Switch has the production code run without some of its mechanisms, and with
// all others. It says whether it could. Searches under way would see it.
func Switch(off ...string) bool {
	all := maps.Clone(quorum.Mechanisms)
	maps.Copy(all, leasefsm.Mechanisms)
	for _, on := range all {
		*on = true
	}
	for _, name := range off {
		on := all[name]
		if on == nil {
			return false
		}
		*on = false
	}
	return true
}
