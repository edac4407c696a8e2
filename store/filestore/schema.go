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

// schemaVersion is written into the database. It is increased with every change
// to the tables or records that an earlier version would misread. A version that
// does not know the queue takes a free lock ahead of its waiters, which costs
// fairness and nothing else.
const schemaVersion = 1

// tokenRange is how far the range of tokens on disk reaches beyond the last
// granted token. Tokens follow the wall clock in microseconds, so this is a
// minute: a store in use waits for the disk once a minute, and after a reboot
// tokens are at most a minute ahead of the clock.
const tokenRange = int64(time.Minute / time.Microsecond)

// tokenFloor is the wall clock in microseconds. The last token of a grant is at
// least this. A clock that is set centuries ahead does not use up all tokens.
func (s *Store) tokenFloor() int64 {
	const farthest = int64(fence.Max / 2)
	return min(s.d.wall().UnixMicro(), farthest)
}

// metaRow is what the tables say about themselves.
type metaRow struct {
	schema int
	origin string // random, chosen when the tables were made
	epoch  string // of the clock; see Dialect
}

func scanMeta(row *sql.Row) (m metaRow, err error) {
	err = row.Scan(&m.schema, &m.origin, &m.epoch)
	return m, err
}

// open creates or updates the tables for this version and this boot, and prepares
// the statements.
func (s *Store) open(ctx context.Context) (err error) {
	if s.meta.epoch, err = s.d.epoch(); err != nil {
		return err
	}
	_, err = s.run(ctx, []quota{s.writers}, func(ctx context.Context) (bool, error) {
		// Usually the tables are as expected, and this check writes nothing to disk.
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

// opening explains an error of run to the caller who opens the store.
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

// inTx runs fn in a writing transaction and rolls it back.
func (s *Store) inTx(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(ctx, tx)
}

// inOrder returns an error if the tables are not as expected. It keeps what it
// finds, for later comparison.
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
	// This statement rarely changes anything. It shows whether this process may
	// write at all: SQLite lets a transaction begin even in a read-only file.
	_, err = tx.ExecContext(ctx, s.d.sql.reserve, 1, 0, tokenRange)
	return err
}

// setUp makes the tables if needed. If the clock has started anew since they were
// last used, no holder is left and every lease is void. Tokens go on above all
// that can have been granted, whether or not those grants reached the disk.
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
