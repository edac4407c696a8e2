package sqlstore

import (
	"context"
	"math/rand/v2"
)

// A sweep looks at some rows, and is begun once for some new ones, so that rows are deleted at
// least as fast as they are made.
const (
	sweepRows  = 256
	sweepEvery = 64
)

// sweepSometimes deletes some rows of locks that nobody has used for long, once in a while. key is
// that of a new row.
func (r *records) sweepSometimes(key string) {
	if rand.N(sweepEvery) > 0 {
		return
	}
	r.spawn(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
		defer cancel()
		if err := r.sweep(ctx, key); err != nil && r.stop.Err() == nil {
			r.o.Logger.Warn("cannot delete the rows of locks that nobody uses", "err", err)
		}
	})
}

// sweep goes on where the last sweep has stopped. The first one begins at key, so that short-lived
// processes do not all look at the same rows.
func (r *records) sweep(ctx context.Context, key string) error {
	r.mu.Lock()
	if !r.swept {
		r.cursor, r.swept = key, true
	}
	after := r.cursor
	r.mu.Unlock()
	var found []row
	collect := func(one row) error {
		after = one.key
		if one.idle && one.now-one.written > keepIdle.Microseconds() {
			found = append(found, one)
		}
		return nil
	}
	before := after
	n := 0
	counting := func(one row) error { n++; return collect(one) }
	if err := r.query(ctx, r.texts.list, counting, before, int64(sweepRows)); err != nil {
		return err
	}
	if n < sweepRows { // from the beginning
		if err := r.query(ctx, r.texts.list, collect, "", int64(sweepRows)); err != nil {
			return err
		}
	}
	r.mu.Lock()
	r.cursor = after
	r.mu.Unlock()
	return r.remove(ctx, found)
}

// remove deletes idle rows, after it has raised the floor above their numbers.
func (r *records) remove(ctx context.Context, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	floor := int64(0)
	for _, one := range rows {
		floor = max(floor, numberOf(one.version))
	}
	if err := r.exec(ctx, r.texts.raise, floor); err != nil {
		return err
	}
	for _, one := range rows { // a row that has changed stays
		if err := r.exec(ctx, r.texts.remove, one.key, one.version, keepIdle.Microseconds()); err != nil && !isConflict(err) {
			return err
		}
	}
	return nil
}
