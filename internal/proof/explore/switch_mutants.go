//go:build mutants

package explore

import (
	"maps"

	"github.com/leasehold-dev/leasehold/internal/leasefsm"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// Switch makes the production code run without the mechanisms off, and with all others.
// It reports whether it could. It must not be called during a search.
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
