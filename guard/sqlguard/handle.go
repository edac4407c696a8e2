package sqlguard

import (
	"context"
	"database/sql"
)

// Beginner is the part of *sql.DB and *sql.Conn that Tx uses.
type Beginner interface {
	BeginTx(ctx context.Context, o *sql.TxOptions) (*sql.Tx, error)
}

// Queryer is the part of *sql.DB, *sql.Conn and *sql.Tx that Highest uses.
type Queryer interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Execer is the part of *sql.DB, *sql.Conn and *sql.Tx that writing uses.
type Execer interface {
	Queryer
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}
