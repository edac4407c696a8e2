package filestore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// machine is the source of time for a file: a clock since boot and the id of that
// boot. All processes of the machine read the same clock, it goes on while the
// machine sleeps, and nobody can set it. thisMachine returns the one of this
// system.
type machine struct {
	now func() (clock.Instant, error)
	// resolution is how far a reading can lag behind.
	resolution time.Duration
	bootID     func() (string, error)
	words      string
	// wall is the machine's wall clock; no token is granted below it.
	wall func() time.Time
}
