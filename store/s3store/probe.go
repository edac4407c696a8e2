package s3store

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/objects"
)

// Probe implements objects.Driver.
func (d *driver) Probe(ctx context.Context) error {
	return objects.Conditions{IfAbsent: "If-None-Match", IfSame: "If-Match", Absent: absent, Other: `"` + rand.Text() + `"`}.Try(ctx, d, objects.ProbeKey)
}

// race has writes compete that expect the same version. It reports whether the server has
// accepted several of them, and so checks the condition and writes in two steps. If the server
// is slow, there are fewer rounds.
func (d *driver) race(ctx context.Context) (racy bool, err error) {
	began := clock.System().Now()
	for n := range raceRounds {
		if n > 0 && clock.System().Now().Sub(began) > d.o.Timeout/2 {
			break
		}
		it, err := d.Read(ctx, raceKey)
		if err != nil {
			return false, err
		}
		var done atomic.Int32
		var wg sync.WaitGroup
		for range racers {
			wg.Go(func() {
				if _, err := d.Write(ctx, raceKey, []byte(rand.Text()), it.Version, false); err == nil {
					done.Add(1)
				}
			})
		}
		wg.Wait()
		if done.Load() > 1 {
			return true, nil
		}
	}
	return false, nil
}

const (
	racers     = 8
	raceRounds = 8
)
