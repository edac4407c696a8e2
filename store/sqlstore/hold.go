package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// Lease is a lease that Hold checks. A *leasehold.Lease is one.
type Lease interface {
	Name() string
	Owner() string
	// Err is nil while the lease is held.
	Err() error
}

// Tx is a transaction of the caller's, such as an *sql.Tx, in the database of the
// locks. An *sql.DB is none, and Hold refuses it.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Hold checks inside a transaction of the caller's that the lease is the current one,
// and keeps the lock from being granted to another owner until the transaction ends.
// So everything that the transaction writes is written while the lease is held, even
// if it commits after the end of the TTL. No fencing token is needed for data in the
// same database.
//
// Hold blocks until the server has answered or ctx ends. It returns an error that
// matches store.ErrNotHeld if the lease is over: the transaction has then failed and
// can only be rolled back. Roll it back after any other error, too. Hold can be called
// again in the same transaction, and in PostgreSQL has to be after a rollback to a
// savepoint that is older than the call: that undoes it. In MySQL a lease whose TTL has
// passed counts as long as no other owner has been granted the lock.
//
// The lock has to be a mutex: with another kind, the error matches store.ErrUnsupported.
//
// Other owners that ask for the lock meanwhile wait, and so does a release of the
// lease; renewals do not. In PostgreSQL they wait no longer than the lease had left when
// Hold was called: from then on, the server ends a transaction in which one statement,
// or one pause between statements, takes longer than that. MySQL cannot do that for one
// transaction: there they wait until the transaction or its connection ends. The role of
// the transaction needs the right to call the procedures (see GrantScript).
func (s *Store) Hold(ctx context.Context, tx Tx, l Lease) error {
	if _, is := tx.(*sql.DB); is { // it has the method, too
		return fmt.Errorf("%w: hold %q: a database handle is no transaction: pass the one that BeginTx returned", store.ErrInvalid, l.Name())
	}
	if err := l.Err(); err != nil {
		return fmt.Errorf("hold %q: %w: %w", l.Name(), store.ErrNotHeld, err)
	}
	query, args := s.HoldQuery(l)
	var left int64
	err := tx.QueryRowContext(ctx, query, args...).Scan(&left)
	switch {
	case err == nil:
		return nil
	case s.engine.fault(err).code == codeOver:
		return fmt.Errorf("hold %q: %w: the lease is over, and the transaction cannot be committed", l.Name(), store.ErrNotHeld)
	case s.engine.fault(err).code == codeKind:
		return fmt.Errorf("hold %q: %w: only the lease of a mutex can be held in a transaction", l.Name(), store.ErrUnsupported)
	}
	return fmt.Errorf("hold %q: %w", l.Name(), err)
}

// HoldQuery returns the query of Hold and its arguments, for transactions that are no
// *sql.Tx, such as a pgx.Tx. It returns one row with one number, or fails. The caller
// checks l.Err first.
func (s *Store) HoldQuery(l Lease) (query string, args []any) {
	return s.calls.hold([]any{[]byte(l.Name()), l.Owner()})
}
