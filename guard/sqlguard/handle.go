package sqlguard

import (
	"context"
	"database/sql"
)

// Beginner is what Tx needs of a *sql.DB or *sql.Conn.
type Beginner interface {
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
}

// Queryer is what Highest needs of a *sql.DB, *sql.Conn or *sql.Tx.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Execer is what writing needs of a *sql.DB, *sql.Conn or *sql.Tx.
type Execer interface {
	Queryer
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
