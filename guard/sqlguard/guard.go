package sqlguard

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/fence"
)

// DefaultTable is the name of the table unless Options say otherwise.
const DefaultTable = "leasehold_fences"

// ErrAmbiguous: the database did not say whether it committed. Look before
// doing anything twice.
var ErrAmbiguous = errors.New("sqlguard: unknown whether the transaction was committed")

// Options for a Guard. Nil is fine.
type Options struct {
	// Table keeps the largest token of each resource: letters, digits and _, with
	// a schema before a dot if need be. Empty: DefaultTable. All that write to a
	// resource must use the same table.
	Table string
}

// Guard runs fenced transactions. It holds no connection and no state, so it is
// cheap, and safe for concurrent use.
type Guard struct {
	d   Dialect
	sql statements
}

// New makes a Guard for that kind of database. It sends nothing. The error
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

// Schema is the statement that makes the table, for those who keep their schema
// themselves. It changes nothing where the table is there already.
func (g *Guard) Schema() string { return g.sql.create }

// CreateTable makes the table unless it is there, and may be called at every
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

// Tx runs fn in a transaction if token is not smaller than the largest that the
// resource has seen in a transaction that was committed, and commits. The
// resource is a name of yours for what one lock protects: 1 to MaxResource bytes
// of UTF-8. Tokens of different locks must not meet at one resource.
//
// It blocks while another fenced transaction of the resource is open, until ctx
// ends. When fn returns an error, or panics, everything is rolled back, the
// larger token too, and the error is returned as it is. fn runs once at most; it
// must not end tx itself, and what it reads should be read through tx.
//
// Errors: a *fence.StaleError when the token was refused, and fn did not run;
// one that matches ErrInvalid or fence.ErrInvalid when nothing was sent;
// ErrAmbiguous when the commit failed and may have happened all the same. After
// any other error nothing was written. Conflicts that come up before fn runs are
// tried again, for some seconds; calling Tx again with the same token is fine
// after any of these.
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

// once is one try of Tx; began says whether fn has run.
func (g *Guard) once(ctx context.Context, db Beginner, resource string, token fence.Token, fn func(tx *sql.Tx) error) (began bool, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, fmt.Errorf("sqlguard: %q: beginning the transaction: %w", resource, err)
	}
	defer tx.Rollback() // does nothing after the commit; on a panic it is all there is
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

// AdmitTx is the check alone, for a transaction of your own, and must come first
// in it. On nil the resource's row is locked, and the token is remembered if the
// transaction is committed. On any error the transaction must be rolled back. It
// blocks and fails like Tx, except that nothing is tried again.
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

// Highest is the largest token that was committed for the resource, zero if
// there is none. It waits for nobody; what it says may be out of date at once.
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
