package filestore

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

func thisMachine() machine {
	system := clock.System()
	offset := sync.OnceValues(boottimeOffset)
	return machine{
		now: func() (clock.Instant, error) {
			ahead, err := offset()
			return system.Now().Add(-ahead), err
		},
		resolution: 0,
		bootID: func() (string, error) {
			id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
			if err != nil {
				return "", fmt.Errorf("cannot tell this boot of the machine from others: %w", err)
			}
			return strings.TrimSpace(string(id)), nil
		},
		words: "this machine's clock since boot (CLOCK_BOOTTIME)",
		wall:  time.Now,
	}
}

// boottimeOffset returns how far this process's CLOCK_BOOTTIME is ahead of the
// machine's. They differ in a time namespace, such as that of a container
// migrated from another machine. Processes that share a file need one clock.
func boottimeOffset() (time.Duration, error) {
	const dir = "/proc/self/"
	inside, err := os.Readlink(dir + "ns/time")
	if os.IsNotExist(err) {
		return 0, nil // a kernel without time namespaces
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read the machine's clock: %w", err)
	}
	// timens_offsets is about the namespace of the children to come.
	if next, err := os.Readlink(dir + "ns/time_for_children"); err != nil || next != inside {
		return 0, fmt.Errorf("cannot read the machine's clock: this process has made a time namespace (%s) and is not in it (%s): start the program inside it", next, inside)
	}
	offsets, err := os.ReadFile(dir + "timens_offsets")
	if err != nil {
		return 0, fmt.Errorf("cannot read the machine's clock: %w", err)
	}
	return parseBoottimeOffset(string(offsets))
}

// parseBoottimeOffset finds the line "boottime <seconds> <nanoseconds>".
func parseBoottimeOffset(offsets string) (time.Duration, error) {
	for line := range strings.Lines(offsets) {
		var sec, nsec int64
		if _, err := fmt.Sscanf(line, "boottime %d %d", &sec, &nsec); err == nil {
			return time.Duration(sec)*time.Second + time.Duration(nsec), nil
		}
	}
	return 0, fmt.Errorf("cannot read the machine's clock: no offset of boottime in %q", offsets)
}
