package filestore

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// schemaVersion is written into the database. It is increased with every change
// to the tables or records that an earlier version would misread. A version that
// does not know the queue takes a free lock ahead of its waiters, which costs
// fairness and nothing else.
const schemaVersion = 1

// open creates or updates the tables for this version and this boot.
func (b *database) open(ctx context.Context) (err error) {
	if b.meta.epoch, err = b.d.epoch(); err != nil {
		return err
	}
	_, err = b.run(ctx, []quota{b.writers}, func(ctx context.Context) (bool, error) {
		// Usually the tables are as expected, and this check writes nothing to disk.
		err := b.inTx(ctx, b.inOrder)
		if errors.Is(err, errNewer) {
			return false, err
		}
		if err != nil {
			err = b.d.durably(ctx, b.db, func(tx *sql.Tx) error { return b.setUp(ctx, tx) })
		}
		return false, err
	})
	return b.opening(err)
}

// opening explains an error of run to the caller who opens the store.
func (b *database) opening(err error) error {
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
	_, err = b.d.explain(err)
	return err
}

// inTx runs fn in a writing transaction and rolls it back.
func (b *database) inTx(ctx context.Context, fn func(context.Context, *sql.Tx) error) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return fn(ctx, tx)
}

// inOrder returns an error if the tables are not as expected. It keeps what it
// finds, for later comparison.
func (b *database) inOrder(ctx context.Context, tx *sql.Tx) error {
	is, err := scanMeta(tx.QueryRowContext(ctx, b.d.sql.meta))
	switch {
	case err != nil:
		return err
	case is.schema > schemaVersion:
		return errNewer
	case is.schema < schemaVersion: // no such version was ever released
		return fmt.Errorf("its schema version %d is not known", is.schema)
	case is.epoch != b.meta.epoch:
		return errOtherEpoch
	}
	b.meta = is
	// This statement rarely changes anything. It shows whether this process may
	// write at all: SQLite lets a transaction begin even in a read-only file.
	_, err = tx.ExecContext(ctx, b.d.sql.reserve, 1, 0, tokenRange)
	return err
}

// setUp makes the tables if needed. If the clock has started anew since they were
// last used, no holder is left and every lease is void. Tokens go on above all
// that can have been granted, whether or not those grants reached the disk.
func (b *database) setUp(ctx context.Context, tx *sql.Tx) error {
	for _, q := range b.d.sql.create {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	err := b.inOrder(ctx, tx)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		_, err = tx.ExecContext(ctx, b.d.sql.found, schemaVersion, rand.Text(), b.meta.epoch, b.tokenFloor()+tokenRange)
	case errors.Is(err, errOtherEpoch):
		if _, err = tx.ExecContext(ctx, b.d.sql.clear); err == nil {
			_, err = tx.ExecContext(ctx, b.d.sql.epoch, b.meta.epoch, b.tokenFloor(), tokenRange)
		}
	default:
		return err
	}
	if err == nil {
		err = b.inOrder(ctx, tx)
	}
	return err
}
