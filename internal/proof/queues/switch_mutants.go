//go:build mutants

package queues

import (
	"maps"

	"github.com/leasehold-dev/leasehold/internal/waitq"
)

// Switch makes the queues run without the mechanism off, if it is not empty, and with all
// others. It reports whether it could. It must not be called during a search.
func Switch(off string) bool {
	all := maps.Clone(waitq.Mechanisms)
	maps.Copy(all, waitq.QueueMechanisms)
	for _, on := range all {
		*on = true
	}
	if on := all[off]; on != nil {
		*on = false
		return true
	}
	return off == ""
}
