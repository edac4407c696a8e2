package driver

import (
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Resizing is a change of the number of permits of a semaphore over several nodes.
type Resizing struct {
	Who      string // names this resize; no other has that name
	From, To store.Kind
	// Seat is for how long the resize has the seat at a node, and Keep for how long a node keeps
	// the number though nobody uses the lock. No lease lasts longer than Seat, and Keep is that
	// and a node timeout more.
	Seat, Keep time.Duration
}
