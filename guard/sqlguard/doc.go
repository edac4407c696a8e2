// Package sqlguard keeps writes of a holder whose lease is over out of an SQL
// database: PostgreSQL, MySQL or MariaDB, SQLite. It uses database/sql; you
// bring the driver. It knows nothing of locks: a token is all it needs.
//
// There are three ways, and what they protect differs.
//
// # A fenced transaction
//
// Guard.Tx runs your statements in a transaction that is refused if the resource
// has seen a larger token. The largest is kept in a table of ours, one row per
// resource. The row stays locked until the transaction ends, so fenced
// transactions of one resource follow each other, in the order of their tokens
// whatever order they came in: a smaller token that waited behind a larger one
// is refused. It protects all rows of one database that you write in it, however
// many tables they are in. Read what you decide by within the same transaction:
// what was read before it may be out of date.
//
//	err := guard.Tx(ctx, db, "invoices/42", lease.Token(), func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE invoices SET state = 'paid' WHERE id = 42")
//		return err
//	})
//
// # A token column in the row itself
//
// Dialect.UpdateRow is one statement, UPDATE ... SET ..., token = $token WHERE
// ... AND token <= $token, that says what stood in its way. It needs no table of
// ours and no transaction, and protects that one row.
//
// # The owner in the row itself
//
// Dialect.ClaimRow writes the lease's owner to the row, and Dialect.UpdateOwned
// changes the row only while that owner still stands there: compare-and-set,
// which needs an owner that is unique, but no order of owners, so it works with
// locks that have no tokens. Claim first, then read, then update: what was read
// before the claim may be out of date. A late claim does succeed, and then it
// is the current holder who is refused; no update is lost either way.
//
// # Isolation
//
// All of it is correct at READ COMMITTED, what PostgreSQL starts from, at REPEATABLE
// READ, what MySQL does, and at SERIALIZABLE. At READ COMMITTED concurrent
// writers wait for each other, the first two of a resource included, and nothing
// needs to be tried again. At the stricter levels, and in SQLite, a database may
// refuse one of two writers just because they met; Tx then tries again by itself, as long as
// your function has not run. What comes after, it reports. Give SQLite a busy
// timeout: without, and without its write-ahead log, a mere reader can make a
// commit fail.
//
// A holder that is paused within its transaction keeps others waiting, not
// writing: end such sessions in the server (idle_in_transaction_session_timeout
// in PostgreSQL and MariaDB's idle_transaction_timeout).
package sqlguard
