package filestore

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

func thisMachine() machine {
	return machine{
		now: func() (clock.Instant, error) {
			// Counts since boot, sleep included, unadjusted. CLOCK_UPTIME_RAW,
			// which Go's monotonic clock is, stands still during sleep.
			var ts unix.Timespec
			if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts); err != nil {
				return 0, fmt.Errorf("clock_gettime(CLOCK_MONOTONIC_RAW): %w", err)
			}
			return clock.Instant(ts.Nano()), nil
		},
		resolution: 0,
		bootID: func() (string, error) {
			id, err := unix.Sysctl("kern.bootsessionuuid")
			if err != nil {
				return "", fmt.Errorf("cannot tell this boot of the machine from others: sysctl kern.bootsessionuuid: %w", err)
			}
			return id, nil
		},
		words: "this machine's clock since boot (CLOCK_MONOTONIC_RAW)",
		wall:  time.Now,
	}
}
