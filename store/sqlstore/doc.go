// Package sqlstore keeps locks in a database server: PostgreSQL, MySQL or MariaDB.
//
// A lock there is a lease, with a TTL, a fencing token and a queue of waiters. That
// is more than the database's own advisory locks offer: those end with a connection,
// do not survive a failover, and do not work behind a pooler.
//
// The package uses database/sql and imports no driver. Install the procedures once
// with Install, or with "leasehold schema" or a migration tool that runs Script. Each
// step of a lock is then one call of a procedure: one round trip and one transaction.
// No transaction stays open between calls, and no row stays locked. In PostgreSQL, requests
// and releases of mutexes that are made while others are under way go together in one call.
//
// The store keeps locks of every kind. A mutex has procedures of its own, so that the
// other kinds cost it nothing.
//
// # Time
//
// The server's clock counts TTLs and is the floor of tokens. It is read after the
// lock's row was locked. If it jumps ahead, leases end earlier than their holders
// expect. A store that notices this grants nothing for as long as the longest lease may last: see Options.MaxTTL. Tokens do not
// go back if the clock is set back, nor, since the clock is their floor, if a backup
// is restored.
//
// # Waiting
//
// A release hands the lock to the first live waiter in the same transaction. A waiter
// blocks in the server on a lock of the session of the one before it, and is woken by
// the release, or by the end of that session. This is only a hint: the rows decide.
// It costs a connection for each lock that is waited for (Options.Connections).
// Waiters without one, and all waiters behind a pooler that gives transactions to any
// session, poll. So do waiters for a semaphore or a read-write lock, where no single
// session is the one to wait for.
//
// # What survives
//
// In PostgreSQL a grant, a hand-off and a renewal commit as synchronous_commit says, and
// a lock that requires more than store.Efficiency does so on disk and on synchronous
// standbys even if that is off. A release and a place in the queue do not wait for the
// disk. In MySQL the server's settings decide for all calls.
//
// Caps says what the settings allow. With fsync off in PostgreSQL, or
// innodb_flush_log_at_trx_commit other than 1 in MySQL, a crash can lose a grant. So can
// a failover, unless PostgreSQL's standbys are synchronous.
package sqlstore
