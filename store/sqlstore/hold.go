package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

// Lease is a lease that Hold checks. A *leasehold.Lease is one.
type Lease interface {
	Name() string
	Owner() string
	// Err is nil while the lease is held.
	Err() error
}

// Tx is a transaction of the caller's, such as an *sql.Tx, in the database of the locks.
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Hold checks inside a transaction of the caller's that the lease is the current one,
// and keeps the lock from being granted to another owner until the transaction ends.
// So everything that the transaction writes is written while the lease is held, even
// if it commits after the end of the TTL: a lease whose TTL has passed counts as long as no
// other owner has been granted the lock. No fencing token is needed for data in the same
// database.
//
// Hold blocks until the server has answered or ctx ends. It returns an error that
// matches store.ErrNotHeld if the lease is over, and store.ErrUnsupported if s keeps its locks in no
// database. In PostgreSQL the transaction has then failed and
// can only be rolled back. Roll it back after any error. Hold can be called again in the same transaction, and has to be after a rollback to a savepoint
// that is older than the call: that undoes it.
//
// A handle that commits by itself, such as an *sql.DB or an *sql.Conn, is refused. The lock has to be
// a mutex: with another kind, the error matches store.ErrUnsupported.
//
// Other owners that ask for the lock meanwhile wait until the transaction or its connection ends,
// and so does a release of the lease; renewals do not. The role of the transaction needs the
// rights that GrantScript gives.
func Hold(ctx context.Context, s *store.Store, tx Tx, l Lease) error {
	r, err := recordsOf(s, l)
	if err != nil {
		return err
	}
	if _, is := tx.(*sql.DB); is {
		return notInTransaction(l)
	}
	if err := l.Err(); err != nil {
		return fmt.Errorf("hold %q: %w: %w", l.Name(), store.ErrNotHeld, err)
	}
	e := r.engine
	query, args := r.holdQuery(l)
	var mark int64
	err = tx.QueryRowContext(ctx, query, args...).Scan(&mark)
	switch {
	case err != nil && e.over(err):
		if st, err := s.Inspect(ctx, l.Name()); err == nil && st.Held && !st.Kind.IsMutex() {
			return fmt.Errorf("hold %q: %w: only the lease of a mutex can be held in a transaction", l.Name(), store.ErrUnsupported)
		}
		return fmt.Errorf("hold %q: %w: the lease is over: roll the transaction back", l.Name(), store.ErrNotHeld)
	case err != nil:
		return fmt.Errorf("hold %q: %w", l.Name(), e.fault(err).explain(err))
	}
	in, err := e.inTransaction(ctx, tx, mark)
	if err != nil {
		return fmt.Errorf("hold %q: %w", l.Name(), e.fault(err).explain(err))
	}
	if !in {
		return notInTransaction(l)
	}
	return nil
}

func notInTransaction(l Lease) error {
	return fmt.Errorf("%w: hold %q: the handle is not in a transaction: pass the one that BeginTx returned", store.ErrInvalid, l.Name())
}

// HoldQuery returns the query of Hold and its arguments, for transactions that are no
// *sql.Tx, such as a pgx.Tx. It returns one row with one number, or fails. The caller checks l.Err
// first, and that this is a transaction. The error is that of Hold for another store.
func HoldQuery(s *store.Store, l Lease) (query string, args []any, err error) {
	r, err := recordsOf(s, l)
	if err != nil {
		return "", nil, err
	}
	query, args = r.holdQuery(l)
	return query, args, nil
}

func (r *records) holdQuery(l Lease) (query string, args []any) {
	return r.engine.bind(r.texts.hold, []any{recordstore.Key(l.Name()), l.Owner()})
}

// recordsOf returns the records of a store in a database.
func recordsOf(s *store.Store, l Lease) (*records, error) {
	if e, ok := s.Engine().(databaseEngine); ok {
		return e.records, nil
	}
	return nil, fmt.Errorf("hold %q: %w: the locks of %s are in no database", l.Name(), store.ErrUnsupported, s.Caps().Engine)
}
