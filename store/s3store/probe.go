package s3store

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// probe returns an error that matches recordstore.ErrRefused if the server does not heed
// conditions. It costs two requests, which the server refuses, and two more the first time.
func (d *driver) probe(ctx context.Context) error {
	for {
		err := d.tryConditions(ctx)
		if err == nil || errors.Is(err, recordstore.ErrRefused) {
			return err
		}
		if clock.Sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return err
		}
	}
}

func (d *driver) ignores(what string) error {
	return recordstore.Refusal("%s does not heed %s, so two clients could get one lock: use S3 itself, or a server that has conditional writes", d.node, what)
}

func (d *driver) tryConditions(ctx context.Context) error {
	write := func(version string) (string, error) {
		return d.Write(ctx, probeKey, []byte("Leasehold tries here whether this server has conditional writes. "+rand.Text()), version, false)
	}
	other := `"` + rand.Text() + `"`
	tag, err := write(absent)
	switch {
	case errors.Is(err, recordstore.ErrConflict): // the object is there, as after every Open but the first
	case err != nil:
		return err
	default:
		if _, err := write(absent); !errors.Is(err, recordstore.ErrConflict) {
			if err == nil {
				err = d.ignores("If-None-Match")
			}
			return err
		}
		if _, err := write(tag); errors.Is(err, recordstore.ErrConflict) {
			return recordstore.Refusal("%s refuses If-Match with the ETag that it has sent: %w", d.node, err)
		} else if err != nil {
			return err
		}
	}
	if _, err = write(other); err == nil {
		return d.ignores("If-Match")
	} else if !errors.Is(err, recordstore.ErrConflict) {
		return err
	}
	return nil
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
