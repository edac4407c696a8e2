package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/fence"
)

// DefaultTable is the default of Options.Table.
const DefaultTable = "leasehold_fences"

// ErrAmbiguous means that the database did not say whether it committed. Check
// what is there before doing anything a second time.
var ErrAmbiguous = errors.New("sqlguard: unknown whether the transaction was committed")

// Options configure a Guard. Nil means the defaults.
type Options struct {
	// Table is the name of the table with the largest token of each resource:
	// letters, digits and _, with an optional schema before a dot. Empty means
	// DefaultTable. All writers to a resource must use the same table.
	Table string
}

// Guard runs fenced transactions. It has no connection and no state, is cheap to
// make, and is safe for concurrent use.
type Guard struct {
	d   Dialect
	sql statements
}

// New returns a Guard for databases of dialect d. It sends nothing. The error
// matches ErrInvalid.
func New(d Dialect, o *Options) (*Guard, error) {
	table := DefaultTable
	if o != nil && o.Table != "" {
		table = o.Table
	}
	if err := errors.Join(d.check(), identifier(table)); err != nil {
		return nil, err
	}
	return &Guard{d: d, sql: d.statements(table)}, nil
}

// Schema returns the statement that creates the table if it does not exist, for
// programs that manage their schema themselves.
func (g *Guard) Schema() string { return g.sql.create }

// CreateTable creates the table if it does not exist. It may be called at every
// start, by many processes at once.
func (g *Guard) CreateTable(ctx context.Context, db Execer) error {
	for again := newTries(); ; {
		_, err := db.ExecContext(ctx, g.sql.create)
		if err == nil {
			return nil
		}
		// PostgreSQL reports one of two that create it at the same time.
		if _, there := db.ExecContext(ctx, g.sql.probe); there == nil {
			return nil
		}
		if err := again.after(ctx, err); err != nil {
			return fmt.Errorf("sqlguard: creating the table: %w", err)
		}
	}
}

// Tx runs fn in a transaction and commits it, if token is not smaller than the
// largest that the resource has seen in a committed transaction. resource is a
// name that the caller chooses for what one lock protects: 1 to MaxResource bytes
// of UTF-8. Do not use tokens of different locks for one resource.
//
// Tx blocks while another fenced transaction of the resource is open, until ctx
// ends. If fn returns an error or panics, everything is rolled back, the larger
// token too, and Tx returns that error unchanged. fn runs at most once. It must
// not end tx, and should read through tx.
//
// The error is a *fence.StaleError if the token was refused; fn did not run. It
// matches ErrInvalid or fence.ErrInvalid if nothing was sent. It matches
// ErrAmbiguous if the commit failed but may have taken effect. After any other
// error nothing was written. Tx retries conflicts that occur before fn runs, for
// some seconds. After any error it is safe to call Tx again with the same token,
// but after ErrAmbiguous fn may then find its own effects in the database.
func (g *Guard) Tx(ctx context.Context, db Beginner, resource string, token fence.Token, fn func(tx *sql.Tx) error) error {
	if err := check(resource, token); err != nil {
		return err
	}
	for again := newTries(); ; {
		began, err := g.once(ctx, db, resource, token, fn)
		if err == nil || began {
			return err
		}
		if err := again.after(ctx, err); err != nil {
			return err
		}
	}
}

// once is one attempt of Tx. began reports whether fn has run.
func (g *Guard) once(ctx context.Context, db Beginner, resource string, token fence.Token, fn func(tx *sql.Tx) error) (began bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("sqlguard: %q: beginning the transaction: %w", resource, err)
	}
	defer tx.Rollback() // no effect after a commit
	if err := g.AdmitTx(ctx, tx, resource, token); err != nil {
		return false, err
	}
	if err := fn(tx); err != nil {
		return true, err
	}
	if err := tx.Commit(); err != nil {
		if refused(err) {
			return true, fmt.Errorf("sqlguard: %q: the commit was refused, nothing is written: %w", resource, err)
		}
		return true, fmt.Errorf("%w: %q: %w", ErrAmbiguous, resource, err)
	}
	return true, nil
}

// AdmitTx makes the check alone, for a transaction of the caller. It must be the
// first statement of tx. If it returns nil, the row of the resource is locked,
// and the token is remembered if the transaction commits. On any error the caller
// must roll back. AdmitTx blocks and fails like Tx, but retries nothing.
func (g *Guard) AdmitTx(ctx context.Context, tx *sql.Tx, resource string, token fence.Token) error {
	if err := check(resource, token); err != nil {
		return err
	}
	highest, err := g.raise(ctx, tx, resource, token)
	if err != nil {
		return fmt.Errorf("sqlguard: %q: %w", resource, err)
	}
	_, err = fence.Admit(resource, highest, token)
	return err
}

func (g *Guard) raise(ctx context.Context, tx *sql.Tx, resource string, token fence.Token) (fence.Token, error) {
	var highest int64 // fits: tokens stay below 2^53
	question, args := g.sql.raise, []any{resource, int64(token)}
	if g.sql.raised != "" {
		if _, err := tx.ExecContext(ctx, question, args...); err != nil {
			return 0, err
		}
		question, args = g.sql.raised, []any{resource}
	}
	err := tx.QueryRowContext(ctx, question, args...).Scan(&highest)
	return fence.Token(highest), err
}

// Highest returns the largest committed token of the resource, or zero if there
// is none. It waits for no transaction; the answer may be out of date at once.
func (g *Guard) Highest(ctx context.Context, db Queryer, resource string) (fence.Token, error) {
	if err := checkResource(resource); err != nil {
		return 0, err
	}
	var highest int64
	err := db.QueryRowContext(ctx, g.sql.look, resource).Scan(&highest)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("sqlguard: %q: %w", resource, err)
	}
	return fence.Token(highest), nil
}
