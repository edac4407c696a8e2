package filestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/leasehold-dev/leasehold/store"
)

// SQLite returns the dialect for New of an SQLite file on this machine, opened
// with the driver of modernc.org/sqlite. The tables are added to the database;
// their names begin with leasehold_. The data source name should include
// _txlock=immediate: without it the store is just as correct, but contending
// steps run several times. Do not use it for a database in memory, which other
// processes cannot share; use package memstore for that.
//
// Most programs want OpenFile instead.
func SQLite() Dialect { return sqliteOn(thisMachine()) }

// sqliteOn is SQLite with the clock and boot id of m.
func sqliteOn(m machine) Dialect {
	return Dialect{
		engine:     "sqlite",
		reach:      "machine",
		clock:      m.words,
		sql:        sqliteStatements,
		now:        m.now,
		resolution: m.resolution,
		epoch:      m.bootID,
		wall:       m.wall,
		oneWriter:  true,
		durably:    sqliteDurably,
		again:      sqliteAgain,
		explain:    sqliteExplain,
	}
}

var sqliteStatements = statements{
	create: []string{
		`CREATE TABLE IF NOT EXISTS leasehold_meta (
			id      INTEGER PRIMARY KEY CHECK (id = 1),
			schema  INTEGER NOT NULL,
			origin  TEXT NOT NULL,
			epoch   TEXT NOT NULL,
			token   INTEGER NOT NULL,
			ceiling INTEGER NOT NULL)`,
		`CREATE TABLE IF NOT EXISTS leasehold_locks (
			name   BLOB PRIMARY KEY,
			record TEXT NOT NULL,
			ends   INTEGER NOT NULL) WITHOUT ROWID`,
	},
	found:   `INSERT INTO leasehold_meta (id, schema, origin, epoch, token, ceiling) VALUES (1, ?, ?, ?, 0, ?)`,
	meta:    `SELECT schema, origin, epoch FROM leasehold_meta WHERE id = 1`,
	epoch:   `UPDATE leasehold_meta SET epoch = ?1, token = ceiling, ceiling = max(ceiling, ?2) + ?3 WHERE id = 1`,
	clear:   `DELETE FROM leasehold_locks`,
	draw:    `UPDATE leasehold_meta SET token = ? WHERE id = 1`,
	reserve: `UPDATE leasehold_meta SET ceiling = max(token + ?1, ?2) + ?3 WHERE id = 1 AND max(token + ?1, ?2) > ceiling`,
	get: `SELECT schema, origin, epoch, token, ceiling, CAST(record AS BLOB) FROM leasehold_meta
		LEFT JOIN leasehold_locks ON name = ? WHERE id = 1`,
	put: `INSERT INTO leasehold_locks (name, record, ends) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET record = excluded.record, ends = excluded.ends`,
	drop:  `DELETE FROM leasehold_locks WHERE name = ?`,
	sweep: `DELETE FROM leasehold_locks WHERE ends <= ?`,
	list:  `SELECT name, CAST(record AS BLOB) FROM leasehold_locks WHERE name >= ? AND name < ? AND ends > ? ORDER BY name`,
}

// sqliteDurably commits with synchronous=EXTRA, SQLite's strictest mode. It syncs
// the log, or the journal and the directory from which that is deleted.
func sqliteDurably(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	const extra = 3
	var usual int
	if err := conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&usual); err != nil {
		return err
	}
	if usual < extra {
		if _, err := conn.ExecContext(ctx, "PRAGMA synchronous = EXTRA"); err != nil {
			return err
		}
		defer func() {
			_, back := conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA synchronous = %d", usual))
			if back != nil { // drop the connection: its later commits would all wait for the disk
				_ = conn.Raw(func(any) error { return driver.ErrBadConn })
			}
		}()
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// sqliteCode returns the primary result code in err, or 0.
func sqliteCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// sqliteAgain reports whether err is one that SQLite returns without having
// changed anything.
func sqliteAgain(err error) bool {
	switch sqliteCode(err) {
	case lib.SQLITE_BUSY, // another connection is writing, recovering, or is the first to open or the last to close
		lib.SQLITE_LOCKED,   // the same, within a shared cache
		lib.SQLITE_PROTOCOL: // lost a race for the log's locks too often
		return true
	}
	return false
}

// sqliteExplain says what to do about errors that a person has to mend.
func sqliteExplain(err error) (store.Outcome, error) {
	what := ""
	switch sqliteCode(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED, lib.SQLITE_PROTOCOL:
		return store.TimedOut, fmt.Errorf("other processes kept the database busy: %w", err)
	case lib.SQLITE_NOTADB:
		what = "it is not an SQLite database: choose another file, or move this one away"
	case lib.SQLITE_CORRUPT:
		what = "it is damaged: end all processes that use it and delete it; that voids all its leases, and fencing tokens go on at the wall clock"
	case lib.SQLITE_READONLY:
		what = "it cannot be written: check the rights to the file and its directory, and whether its file system is read-only"
	case lib.SQLITE_CANTOPEN:
		what = "it, or the -wal and -shm files beside it, cannot be opened: check the rights to them and to the directory"
	case lib.SQLITE_PERM, lib.SQLITE_AUTH:
		what = "access to it is denied: check the rights to the file"
	case lib.SQLITE_FULL:
		what = "the disk is full"
	case lib.SQLITE_IOERR:
		what = "reading or writing it failed: check the disk, and that it is not a network file system"
	default:
		return store.Refused, err
	}
	return store.Refused, fmt.Errorf("%s: %w", what, err)
}
