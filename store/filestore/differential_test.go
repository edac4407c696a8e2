package filestore

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/differential"
	"github.com/leasehold-dev/leasehold/internal/rule"
	"github.com/leasehold-dev/leasehold/internal/shown"
	"github.com/leasehold-dev/leasehold/store"
)

// The store does what package rule says, command by command, and the rows it
// writes agree.
func TestFollowsTheRule(t *testing.T) {
	m := newFakeMachine()
	differential.Check(t, &ruled{m: m, s: m.open(t, filepath.Join(t.TempDir(), "locks.db"))})
}

// The comparison above fails if the store forgets rows.
func TestForgottenRowsAreNoticed(t *testing.T) {
	m := newFakeMachine()
	for name, change := range map[string]string{
		"rows":   "DELETE FROM leasehold_locks",
		"tokens": "UPDATE leasehold_meta SET token = 0",
	} {
		r := &ruled{m: m, s: m.open(t, filepath.Join(t.TempDir(), "locks.db"))}
		r.meddle = func() error {
			_, err := r.s.db.ExecContext(t.Context(), change)
			return err
		}
		if err := differential.Find(r, 20); err == nil {
			t.Errorf("the comparison does not notice that %s are forgotten before each command", name)
		}
	}
}

// ruled is the store as the comparison with the rule drives it.
type ruled struct {
	m *fakeMachine
	s *Store
	// round tells the locks of one run from those of the others: they share a
	// file, which takes longer to make than to use.
	round int
	// meddle is called before each command.
	meddle func() error
}

func (r *ruled) Traits() differential.Traits { return differential.Traits{Tombstones: true} }

func (r *ruled) Begin(now clock.Instant) error {
	r.round++
	r.m.sinceBoot.Store(int64(now))
	return nil
}

func (r *ruled) Pass(d time.Duration) error {
	r.m.sleep(d)
	return nil
}

func (r *ruled) Clock() (clock.Instant, error) { return clock.Instant(r.m.sinceBoot.Load()), nil }

func (r *ruled) name(lock string) string { return fmt.Sprint(r.round, "/", lock) }

func (r *ruled) Do(c differential.Command) (differential.Answer, error) {
	if r.meddle != nil {
		if err := r.meddle(); err != nil {
			return differential.Answer{}, err
		}
	}
	c.Lock = r.name(c.Lock)
	if c.Op == differential.Bury {
		return r.bury(c)
	}
	return differential.ByStore(r.s, c)
}

// bury does what the store does in the background after an acquire of unknown outcome.
func (r *ruled) bury(c differential.Command) (differential.Answer, error) {
	var ans rule.Answer
	_, err := r.s.write(context.Background(), func(t *step) (err error) {
		ans, err = t.release(store.ReleaseRequest{Lease: store.Lease{Name: c.Lock, Owner: c.Owner.ID, Meta: c.Owner.Meta, TTL: c.TTL}}, t.lasting(c.TTL), nil)
		return err
	})
	switch {
	case err != nil:
		return differential.Answer{}, err
	case ans.Verdict == rule.Done:
		return differential.Answer{Verdict: differential.Done}, nil
	}
	return differential.Answer{Verdict: differential.NotHeld}, nil
}

// Look reads the row, and demands that what Inspect makes of it is the same.
func (r *ruled) Look(lock string) (differential.State, error) {
	var row row
	var told store.State
	err := r.s.read(context.Background(), func(t *step) (err error) {
		row, err = t.read(r.name(lock))
		row.Record = rule.Expire(row.Record, t.now)
		told = shown.State(r.name(lock), row.Record, t.now)
		return err
	})
	if err != nil {
		return differential.State{}, err
	}
	now := clock.Instant(r.m.sinceBoot.Load())
	there := differential.State{Tombstones: map[string]time.Duration{}}
	for _, t := range row.Tombstones {
		there.Tombstones[t.Owner] = t.Expiry.Sub(now)
	}
	for _, h := range row.Holds {
		there.Holder, there.Left, there.Token = h.Owner, h.Expiry.Sub(now), uint64(h.Token)
	}
	switch {
	case len(row.Holds) > 1:
		return there, fmt.Errorf("a mutex is held %d times: %+v", len(row.Holds), row)
	case told.Held != (there.Holder != "") || told.Holder.Owner != there.Holder || told.ExpiresIn != there.Left || uint64(told.Token) != there.Token:
		return there, fmt.Errorf("Inspect returns %+v, and the row has %v", told, there)
	}
	return there, nil
}
