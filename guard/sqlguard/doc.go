// Package sqlguard refuses writes to an SQL database by a holder whose lease is
// over. It supports PostgreSQL, MySQL, MariaDB and SQLite through database/sql;
// the program chooses the driver. It knows nothing of locks, only fencing tokens.
//
// There are two ways to guard a write. They protect different things.
//
// # A fenced transaction
//
// Guard.Tx runs your statements in a transaction that is refused if the resource
// has seen a larger token. A table of the guard keeps the largest token, in one
// row per resource. The row stays locked until the transaction ends. Fenced
// transactions of one resource therefore run one after the other, with rising
// tokens: a smaller token that waited behind a larger one is refused. Tx protects
// all rows that the transaction writes, in any table of the database. Read what
// your writes depend on within the same transaction: what was read before it may
// be out of date.
//
//	err := guard.Tx(ctx, db, "invoices/42", lease.Token(), func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE invoices SET state = 'paid' WHERE id = 42")
//		return err
//	})
//
// # A token column in the row itself
//
// Dialect.UpdateRow runs one statement, UPDATE ... SET ..., token = $token WHERE
// ... AND token <= $token, and reports why it was refused. It needs neither a
// table of the guard nor a transaction, and protects that one row.
//
// # Isolation
//
// Both are correct at READ COMMITTED (the default of PostgreSQL), REPEATABLE
// READ (the default of MySQL) and SERIALIZABLE. At READ COMMITTED concurrent
// writers wait for each other, even the first two of a resource, and nothing has
// to be retried. At the stricter levels, and in SQLite, the database may refuse
// one of two concurrent writers. Tx retries such conflicts until your function
// has run, and reports later ones. Give SQLite a busy timeout: with neither a
// busy timeout nor a write-ahead log, a mere reader can make a commit fail.
//
// A holder that is paused within its transaction makes other writers wait. End
// such sessions in the server (idle_in_transaction_session_timeout in PostgreSQL,
// idle_transaction_timeout in MariaDB).
package sqlguard
