// Package sqlstore keeps locks in a database server: PostgreSQL, MySQL or MariaDB.
//
// A lock there is a lease, with a TTL, a fencing token and a queue of waiters. That
// is more than the database's own advisory locks offer: those end with a connection,
// do not survive a failover, and do not work behind a pooler.
//
// The package uses database/sql and imports no driver. It is a driver of store/recordstore, which
// has the rule of a lock: there is one table, made by Install, "leasehold schema" or a migration tool
// that runs Script, with one row for each lock. A step replaces the row if it has still the version
// that was read: one statement that commits by itself, at any isolation level and behind any pooler.
// The server's settings say when a commit is durable, and Caps says what they allow.
//
// # Time
//
// Each client counts TTLs by its own clock. The server dates the rows, so that a client that finds the lock
// of a dead holder knows for how long it was not renewed. A client that has seen the server's clock notices
// when it was set ahead, and does not count that.
//
// # Waiting
//
// PostgreSQL wakes the process of the waiter that a release hands the lock to, if pgx is the driver and
// nothing is between it and the server. Other waiters look for the lock now and then.
//
// # Files
//
//	store.go, options.go, url.go  opening a store
//	driver.go                     the driver: reading and replacing a row
//	sweep.go                      deleting rows that nobody uses
//	bells.go, direct.go           waking waiters in PostgreSQL
//	hold.go                       Hold, in a transaction of the caller's
//	server.go                     what the server says of itself, and Examine
//	schema.go                     making the table
//	dialect.go                    what differs between databases: postgresql*.go, mysql*.go
//	codes.go                      what an error says of the statement
package sqlstore
