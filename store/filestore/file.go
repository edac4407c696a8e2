package filestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"

	"github.com/leasehold-dev/leasehold/store"
)

// OpenFile returns a store in the SQLite file at path. Its locks exclude all
// processes of this machine that open the same file. It blocks until the file is
// ready, ctx ends or Options.Timeout passes.
//
// A missing file is created with read and write access for its owner only. Its
// directory must exist unless Options.MakeDir is set. OpenFile refuses a file
// that a user other than this one and the administrator owns or can write: that
// user could take and end every lock. It also refuses a file whose directory
// belongs to another user, or is writable by everybody and not sticky (as /tmp
// is), because the file could be replaced there. Parent directories are not
// checked. It refuses a file with several names (hard links), and one that has
// tables of another program. See Options.Shared for files that several users
// share on purpose. While the file is in use, SQLite keeps two more files beside
// it, whose names end in -wal and -shm.
//
// Do not remove or replace any of the three while a process has the file open.
// Its stores would then grant nothing more, and no other process could open the
// file until the last of them has ended.
//
// Nothing else in this process may open the file, not even to copy it: on most
// systems, closing it again drops SQLite's locks on it.
//
// path may contain any bytes but NUL. It must not be on a network file system;
// see the package documentation. o may be nil.
func OpenFile(ctx context.Context, path string, o *Options) (*Store, error) {
	return openFile(ctx, path, o, SQLite())
}

const (
	// maxReads is how many reading transactions may run at once. They do not
	// block each other or the one writer.
	maxReads = 3
	maxConns = maxReads + 2 // plus the writer's, and Store.stays
)

func openFile(ctx context.Context, path string, o *Options, d Dialect) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	path, err := prepareFile(path, o)
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, cmp.Or(o.Timeout, defaultTimeout), errLimit)
	defer cancel()
	var stray *strayError // the last one
	for try := 0; ; try++ {
		s, err := openAnchored(bounded, path, o, d)
		if errors.As(err, &stray) && bounded.Err() == nil {
			pause(bounded, try)
			continue
		}
		if err != nil && bounded.Err() != nil && stray != nil {
			err = stray // more useful than the time limit
		}
		switch {
		case err == nil:
			return s, nil
		case errors.Is(err, store.ErrInvalid):
			return nil, err
		case ctx.Err() != nil:
			err = errors.Join(ctx.Err(), err)
		}
		return nil, fmt.Errorf("lock file %s: %w", path, err)
	}
}

// openAnchored makes one attempt to open the file.
func openAnchored(ctx context.Context, path string, o *Options, d Dialect) (*Store, error) {
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return nil, err
	}
	a, err := openAnchor(path)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(maxConns)
	// Connections stay: opening one costs more than a step.
	db.SetMaxIdleConns(maxConns)
	s, err := newStore(db, d, o)
	if err != nil {
		err = errors.Join(err, db.Close())
		a.release()
		return nil, err
	}
	s.own = true
	s.node = path
	s.intact = func() error { return a.intact(path) }
	s.single = a.single
	s.turnstile = a.turnstile()
	s.closed = a.release
	s.readers = make(quota, maxReads)
	if real, err := realPath(path); err == nil {
		s.push = newPusher(real, o, s.hear, s.log)
	}
	err = a.settle(ctx, path, func() error {
		err := s.useLog(ctx)
		if err == nil {
			err = s.open(ctx)
		}
		if err == nil {
			// While one connection is open, SQLite does not remove the log.
			s.stays, err = db.Conn(ctx)
		}
		if err == nil {
			_, err = scanMeta(s.stays.QueryRowContext(ctx, d.sql.meta))
		}
		if err != nil {
			err = errors.Join(err, s.disconnect())
		}
		return err
	}, s.disconnect)
	if err != nil {
		_ = s.Close() // the first error is the one to report
		return nil, err
	}
	return s, nil
}

// dsn is the data source name for the file at path.
//
//   - mode=rw: SQLite never creates the file, so it always has the rights that
//     prepareFile gave it.
//   - busy_timeout(0): run waits for other processes, as it knows the caller's
//     context.
//   - synchronous(NORMAL): with a write-ahead log, a power failure loses the last
//     commits but does not damage the file (see the package documentation).
//     sqliteDurably commits what must not be lost.
//   - fullfsync(1): on macOS, a sync reaches the disk only with this.
func dsn(path string) string {
	return "file://" + escapePath(path) + "?mode=rw&_txlock=immediate&_error_rc=1&_dqs=0" +
		"&_pragma=busy_timeout(0)&_pragma=synchronous(NORMAL)&_pragma=fullfsync(1)"
}

// escapePath escapes path for a URI.
func escapePath(path string) string {
	const plain = "/._-~abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b strings.Builder
	path = slashed(path)
	for i := range len(path) {
		if c := path[i]; strings.IndexByte(plain, c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// useLog makes the file use a write-ahead log. Readers and the writer then do not
// wait for each other, a commit is one write, and no commit waits for the disk.
// With SQLite's other journals each commit does, twice. The setting stays with
// the file.
func (b *database) useLog(ctx context.Context) error {
	_, err := b.run(ctx, []quota{b.writers}, func(ctx context.Context) (bool, error) {
		if err := b.inTx(ctx, onlyOurs); err != nil {
			return false, err
		}
		var mode string
		if err := b.db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
			return false, err
		}
		if mode != "wal" {
			return false, fmt.Errorf("its file system cannot share memory between processes (journal mode %q): use a local disk", mode)
		}
		return false, nil
	})
	return b.opening(err)
}

// onlyOurs returns an error if the database has tables of another program, which
// our tables or the journal mode could disturb.
func onlyOurs(ctx context.Context, tx *sql.Tx) error {
	var other string
	err := tx.QueryRowContext(ctx, `SELECT name FROM sqlite_schema
		WHERE name NOT GLOB 'leasehold_*' AND name NOT GLOB 'sqlite_*' LIMIT 1`).Scan(&other)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return unmarked(ctx, tx)
	case err != nil:
		return err
	}
	return fmt.Errorf("it is the database of another program (it has a table %q): give the locks a file of their own", other)
}

// unmarked returns an error if another program has marked the database as its own. It may
// not have made tables yet.
func unmarked(ctx context.Context, tx *sql.Tx) error {
	for _, mark := range []string{"application_id", "user_version"} {
		n := 0
		if err := tx.QueryRowContext(ctx, "PRAGMA "+mark).Scan(&n); err != nil {
			return err
		}
		if n != 0 {
			return fmt.Errorf("it is the database of another program (its %s is %d): give the locks a file of their own", mark, n)
		}
	}
	return nil
}
