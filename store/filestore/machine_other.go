//go:build !linux && !darwin && !windows

package filestore

import (
	"fmt"
	"runtime"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

func thisMachine() machine {
	err := fmt.Errorf("%w: locks in a file need a way to tell one boot of the machine from another, and none is known for %s: use a server", store.ErrUnsupported, runtime.GOOS)
	return machine{
		now:    func() (clock.Instant, error) { return 0, err },
		bootID: func() (string, error) { return "", err },
		words:  "none on " + runtime.GOOS,
		wall:   time.Now,
	}
}
