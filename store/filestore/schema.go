package filestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
)

// schemaVersion is written into the database and goes up with every change to
// what is in the tables, the records included, that an earlier version would take
// for something else. One that knows of no line takes a lock that is free before
// those who wait for it: that costs order, and no more.
const schemaVersion = 1

// tokenRange is how far the range of tokens on disk reaches beyond the token that
// is granted. Tokens follow the wall clock in microseconds, so this is a minute:
// a store in use waits for the disk once a minute, and after a reboot tokens are
// at most a minute ahead of the clock.
const tokenRange = int64(time.Minute / time.Microsecond)

// tokenFloor is the wall clock in microseconds: the least that the last token of a
// grant can be. A clock that is set centuries ahead does not use up all tokens.
func (s *Store) tokenFloor() int64 {
	const farthest = int64(fence.Max / 2)
	return min(s.d.wall().UnixMicro(), farthest)
}

// metaRow is what the tables say of themselves.
type metaRow struct {
	schema int
	origin string // made up for these tables when they were made
	epoch  string // of the clock, see Dialect
}

func scanMeta(row *sql.Row) (m metaRow, err error) {
	err = row.Scan(&m.schema, &m.origin, &m.epoch)
	return m, err
}

// open makes the tables what this version and this boot need, and prepares the
// statements.
func (s *Store) open(ctx context.Context) (err error) {
	if s.meta.epoch, err = s.d.epoch(); err != nil {
		return err
	}
	_, err = s.run(ctx, s.writers, func(ctx context.Context) (bool, error) {
		// Usually all is well, and finding out writes nothing to disk.
		err := s.inTx(ctx, s.inOrder)
		if errors.Is(err, errNewer) {
			return false, err
		}
		if err != nil {
			err = s.d.durably(ctx, s.db, func(tx *sql.Tx) error { return s.setUp(ctx, tx) })
		}
		if err == nil {
			err = s.prepare(ctx)
		}
		return false, err
	})
	return s.opening(err)
}

// opening puts an error of run in words, for those who open the store.
func (s *Store) opening(err error) error {
	var over *endedError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &over):
	case over.cause == errLimit && over.last != nil:
		err = over.last
	default:
		return err
	}
	_, err = s.d.explain(err)
	return err
}

// inTx runs fn in a writing transaction that it takes back.
func (s *Store) inTx(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(ctx, tx)
}

// inOrder says what is not. What it finds it keeps for later comparison.
func (s *Store) inOrder(ctx context.Context, tx *sql.Tx) error {
	is, err := scanMeta(tx.QueryRowContext(ctx, s.d.sql.meta))
	switch {
	case err != nil:
		return err
	case is.schema > schemaVersion:
		return errNewer
	case is.schema < schemaVersion: // no such version was ever released
		return fmt.Errorf("its schema version %d is not known", is.schema)
	case is.epoch != s.meta.epoch:
		return errOtherEpoch
	}
	s.meta = is
	// Rarely has this something to do. It shows whether this process may write
	// at all: of a file it may not write, SQLite lets it begin all the same.
	_, err = tx.ExecContext(ctx, s.d.sql.reserve, 1, 0, tokenRange)
	return err
}

// setUp makes the tables if need be. If the clock has begun anew since they were
// last used, no holder is left: every lease is void. Tokens go on above all that
// can have been granted, whether or not those grants reached the disk.
func (s *Store) setUp(ctx context.Context, tx *sql.Tx) error {
	for _, q := range s.d.sql.create {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	err := s.inOrder(ctx, tx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = tx.ExecContext(ctx, s.d.sql.found, schemaVersion, rand.Text(), s.meta.epoch, s.tokenFloor()+tokenRange)
	case errors.Is(err, errOtherEpoch):
		if _, err = tx.ExecContext(ctx, s.d.sql.clear); err == nil {
			_, err = tx.ExecContext(ctx, s.d.sql.epoch, s.meta.epoch, s.tokenFloor(), tokenRange)
		}
	default:
		return err
	}
	if err == nil {
		err = s.inOrder(ctx, tx)
	}
	return err
}
