//go:build !linux

package history

import (
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Now reads a clock that all processes of the machine share, so that their
// histories can be laid side by side: here, the time of day.
func Now() clock.Instant { return clock.Instant(time.Now().UnixNano()) }

// Steady returns a function that says, later, whether the time of day was
// stepped in between. A history ordered by it then means nothing.
func Steady() func() error {
	began := time.Now()
	return func() error {
		now := time.Now()
		stepped := now.Round(0).Sub(began.Round(0)) - now.Sub(began)
		if stepped.Abs() > 20*time.Millisecond {
			return fmt.Errorf("the time of day was stepped by %v meanwhile, and on this system it orders the history: run again", stepped)
		}
		return nil
	}
}
