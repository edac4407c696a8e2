package filestore

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// machine is where a file gets its time from: a clock that all processes of
// this machine read alike, that runs on while the machine sleeps and that
// nobody sets, and the name of the boot it counts from. thisMachine, one for
// each system, makes it.
type machine struct {
	now func() (clock.Instant, error)
	// resolution is how far a reading can be behind the time.
	resolution time.Duration
	bootID     func() (string, error)
	words      string
	// wall is the machine's wall clock, below which no token is granted.
	wall func() time.Time
}
