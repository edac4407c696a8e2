package filestore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// Errors of a step that does not find its tables as expected.
var (
	errOtherEpoch = errors.New("a process with another boot id has taken it over: it is shared with another machine, or with a container that has its own boot id, and locks in a file do not work across those")
	errEmptied    = errors.New("its lock tables were emptied while it was in use")
	errReplaced   = errors.New("it was replaced by another while in use: open it again")
	errNewer      = errors.New("it was made by a newer version of this program: use that version, or another database")
)

// tokensUsedUpError reports that the range of tokens has fewer left than a step
// needs.
type tokensUsedUpError struct{ need int64 }

func (e tokensUsedUpError) Error() string { return "the range of tokens is used up" }

// step is one transaction in progress.
type step struct {
	tx  *transaction
	s   *Store
	now clock.Instant
	// last is the last token, and ceiling the end of the range of tokens, once a row has been
	// read.
	last, ceiling int64
	wrote         bool
	// committed are called after the commit.
	committed []func()
}

// once runs fn in one transaction. maybe is set if the commit failed, in which
// case it may have taken effect.
func (s *Store) once(ctx context.Context, readOnly bool, fn func(*step) error) (maybe bool, err error) {
	t := &step{s: s}
	maybe, err = s.transact(ctx, readOnly, func(tx *transaction) (commit bool, err error) {
		t.tx = tx
		if err := s.intact(); err != nil {
			return false, err
		}
		if t.now, err = s.d.now(); err != nil {
			return false, err
		}
		err = fn(t)
		return t.wrote, err
	})
	if err == nil && t.wrote {
		for _, f := range t.committed {
			f()
		}
	}
	return maybe, err
}

// check returns an error if the tables are not those that the store was opened
// on, or no longer have the same meaning. Every step that reads calls it.
func (t *step) check(schema int64, origin, epoch string) error {
	switch meta := &t.s.meta; {
	case schema != int64(meta.schema):
		return errNewer
	case origin != meta.origin:
		return errReplaced
	case epoch != meta.epoch:
		return errOtherEpoch
	}
	return nil
}

// read returns the record of a lock. A lock without a row is free.
func (t *step) read(name string) (r row, err error) {
	found := false
	err = t.tx.query(qGet, func(v []driver.Value) error {
		found = true
		schema, _ := v[0].(int64) // a value of another type differs from all
		origin, _ := v[1].(string)
		epoch, _ := v[2].(string)
		if err := t.check(schema, origin, epoch); err != nil {
			return err
		}
		var last, ceiling bool
		t.last, last = v[3].(int64)
		t.ceiling, ceiling = v[4].(int64)
		if !last || !ceiling {
			return fmt.Errorf("the tokens in leasehold_meta are no numbers: %v, %v", v[3], v[4])
		}
		if v[5] == nil {
			return nil
		}
		text, _ := v[5].([]byte)
		r, err = decode(name, text)
		return err
	}, []byte(name))
	if err == nil && !found {
		err = errEmptied
	}
	return r, err
}

// write stores a record. If nothing but the last token is left, it deletes the
// row. The next grant draws a token above all that any lock here has had, so a
// free lock needs no row to keep its tokens rising, and unused names do not pile
// up.
func (t *step) write(name string, r row) error {
	t.wrote = true
	if r.Idle() {
		return t.tx.exec(qDrop, []byte(name))
	}
	text, err := r.encode()
	if err != nil {
		return err
	}
	return t.tx.exec(qPut, []byte(name), text, int64(ends(r.Record)))
}

// ends returns the time when nothing of r will be left.
func ends(r rule.Record) (end clock.Instant) {
	for _, h := range r.Holds {
		end = max(end, h.Expiry)
	}
	for _, p := range r.Queue {
		end = max(end, p.Expiry)
	}
	for _, b := range r.Tombstones {
		end = max(end, b.Expiry)
	}
	if r.Broken != nil {
		end = max(end, r.Broken.Expiry)
	}
	return end
}

// sweepEvery is how many draws of tokens lie between two sweeps. A sweep reads
// all rows, and deletes those of locks that expired and that nobody has asked for
// since.
const sweepEvery = 1024

// draw takes the next n tokens and returns the first. They are above every earlier token
// of any lock in the database, and not below the wall clock, which is the floor of tokens
// if the file is lost. The step has read a row before.
func (t *step) draw(n int) (first fence.Token, err error) {
	if err := t.s.single(); err != nil {
		return 0, err
	}
	t.wrote = true
	before, more := max(t.last, t.s.tokenFloor()-1), int64(n)
	if more > t.ceiling-before {
		return 0, tokensUsedUpError{more}
	}
	t.last = before + more
	if err := t.tx.exec(qDraw, t.last); err != nil {
		return 0, err
	}
	if t.last%sweepEvery < more {
		if err := t.tx.exec(qSweep, int64(t.now)); err != nil {
			return 0, err
		}
	}
	return fence.Token(before + 1), nil
}

// lasting returns the TTL that keeps a lease for at least ttl, given the
// resolution of the clock.
func (t *step) lasting(ttl time.Duration) time.Duration {
	if longer := ttl + t.s.d.resolution; longer > ttl {
		return longer
	}
	return ttl
}
