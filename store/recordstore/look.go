package recordstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold-dev/leasehold/internal/shown"
	"github.com/leasehold-dev/leasehold/store"
)

// Inspect implements driver.Engine.
func (s *engine) Inspect(ctx context.Context, name string) (store.State, error) {
	var snap *snapshot
	if _, err := s.register(name).do(ctx, func(t *txn) { snap = t.snap }); err != nil {
		return store.State{}, s.failed("inspect", name, false, err)
	}
	now := s.now()
	rec := s.withoutEnded(snap, now)
	st := shown.State(name, rec, now)
	st.Queue = shown.Queue(rec, now)
	st.Broken = shown.Broken(rec, now)
	return st, nil
}

// List implements driver.Engine. A record that cannot be read makes the result incomplete.
func (s *engine) List(ctx context.Context, prefix string) ([]store.State, error) {
	bounded, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	held := []store.State{}
	var bad error
	err := s.driver.List(bounded, func(key string, it Item) error {
		if it.Value == nil {
			return nil
		}
		w, err := decode(it.Value)
		if err == nil && s.key(w.name) != key {
			err = errRecord
		}
		if err != nil {
			bad = cmp.Or(bad, fmt.Errorf("list: the record with key %q cannot be read: %w", key, err))
			return nil
		}
		if !strings.HasPrefix(w.name, prefix) {
			return nil
		}
		snap, err := s.register(w.name).see(it, nil)
		if err != nil {
			return err
		}
		now := s.now()
		if st := shown.State(w.name, s.withoutEnded(snap, now), now); st.Held {
			held = append(held, st)
		}
		return nil
	})
	slices.SortFunc(held, func(a, b store.State) int { return strings.Compare(a.Name, b.Name) })
	switch {
	case ctx.Err() != nil:
		bad = s.failed("list", prefix, false, ctx.Err())
	case bounded.Err() != nil:
		bad = s.failed("list", prefix, false, s.limited(err))
	case err != nil:
		bad = s.failed("list", prefix, false, err)
	}
	if bad != nil {
		bad = errors.Join(store.ErrIncomplete, bad)
	}
	return held, bad
}
