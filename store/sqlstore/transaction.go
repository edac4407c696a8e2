package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
)

// inTransaction runs do in a transaction at READ COMMITTED on a connection. committed is set
// if the commit was sent: with an error, it may have had an effect or not. The connection may
// be closed after an error.
//
// The transaction begins and ends with statements. An sql.Tx ends itself in the background
// when ctx ends, and an sql.Conn that is discarded meanwhile can panic.
func inTransaction(ctx context.Context, e engine, conn *sql.Conn, do func() error) (committed bool, err error) {
	for _, statement := range e.begin() {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			discard(conn)
			return false, err
		}
	}
	if err := do(); err != nil {
		if !rolledBack(ctx, conn) {
			discard(conn) // the server then rolls back
		}
		return false, err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		discard(conn)
		return true, err
	}
	return true, nil
}

func rolledBack(ctx context.Context, conn *sql.Conn) bool {
	if ctx.Err() != nil {
		return false
	}
	_, err := conn.ExecContext(ctx, "ROLLBACK")
	return err == nil
}

// discard closes a connection instead of giving it back to the pool. The server then frees
// what the session has locked. It does nothing if the connection is closed already.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	conn.Close()
}
