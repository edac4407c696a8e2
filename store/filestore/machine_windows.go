package filestore

import (
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// prefetch is where the kernel writes down how often it has booted.
const prefetch = `SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters`

func thisMachine() machine {
	return machine{
		// The tick count goes on during sleep and hibernation.
		now: func() (clock.Instant, error) { return clock.Instant(windows.DurationSinceBoot()), nil },
		// It moves with the timer interrupt, at least 64 times a second.
		resolution: 16 * time.Millisecond,
		bootID: func() (string, error) {
			key, err := registry.OpenKey(registry.LOCAL_MACHINE, prefetch, registry.QUERY_VALUE)
			if err != nil {
				return "", fmt.Errorf("cannot tell this boot of the machine from others: open registry key %s: %w", prefetch, err)
			}
			defer key.Close()
			id, _, err := key.GetIntegerValue("BootId")
			if err != nil {
				return "", fmt.Errorf("cannot tell this boot of the machine from others: BootId in registry key %s: %w", prefetch, err)
			}
			return strconv.FormatUint(id, 10), nil
		},
		words: "this machine's tick count since boot",
		wall:  time.Now,
	}
}
