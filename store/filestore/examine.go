package filestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"

	"github.com/leasehold-dev/leasehold/store"
)

// FileExamination is what ExamineFile found out about a lock file. It has facts,
// not conclusions.
type FileExamination struct {
	// Path is the absolute path of the file.
	Path string
	// Missing reports that there is no file yet. The fields below are then about
	// the directory in which it would be created.
	Missing bool
	// Shared is Options.Shared.
	Shared bool
	// Exposed says how other users could tamper with the file. It is nil if they
	// cannot.
	Exposed error
	// Network is the kind of network file system that the file is on. It is empty
	// for a local file system or an unknown one.
	Network string
	// Free is the number of bytes left on its disk, if FreeKnown is set.
	Free      uint64
	FreeKnown bool
	// Journal is SQLite's journal mode before the examination. It is "wal" after
	// the first use, and empty if there is no database to ask.
	Journal string
	// Unusable says why a lock cannot be acquired and released in the file. It is
	// nil if it can.
	Unusable error
}

// ExamineFile examines the lock file at path. It does not create a missing file.
// It opens an existing file as OpenFile does, and acquires and releases a lock
// with a unique name. It blocks like OpenFile. It returns an error if path cannot
// name a file, or if ctx has ended. o may be nil.
func ExamineFile(ctx context.Context, path string, o *Options) (FileExamination, error) {
	if o == nil {
		o = &Options{}
	}
	abs, err := filepath.Abs(path)
	if err != nil || path == "" {
		return FileExamination{}, fmt.Errorf("%w: lock file %q: the path cannot be made absolute: %v", store.ErrInvalid, path, err)
	}
	e := FileExamination{Path: abs, Shared: o.Shared}
	info, err := os.Stat(abs)
	e.Missing = errors.Is(err, fs.ErrNotExist)
	at := abs
	if e.Missing {
		at = existing(filepath.Dir(abs))
	}
	e.Network = networkFileSystem(at)
	e.Free, e.FreeKnown = freeSpace(at)
	switch {
	case e.Missing:
		if !o.MakeDir {
			e.Unusable = directory(abs)
		}
		if at == filepath.Dir(abs) {
			e.Exposed = privateDir(at)
		}
		if e.Exposed != nil && !o.Shared {
			break
		}
		if e.Unusable == nil {
			e.Unusable = writable(at)
		}
	case err != nil:
		e.Unusable = err
	case info.Mode().IsRegular():
		if e.Exposed = cmp.Or(privateDir(filepath.Dir(abs)), private(abs, info)); e.Exposed != nil && !o.Shared {
			return e, ctx.Err()
		}
		e.Journal = journalMode(ctx, abs)
		fallthrough
	default:
		e.Unusable = tryFile(ctx, abs, o)
	}
	return e, ctx.Err()
}

// existing returns dir or, if it does not exist, its nearest ancestor that does.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// writable returns an error if no file can be created in dir.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".leasehold-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// journalMode returns the journal mode. Opening the store would change it.
func journalMode(ctx context.Context, path string) string {
	connector, err := sqlite.NewConnector(dsn(path))
	if err != nil {
		return ""
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	mode, tables := "", 0
	err = errors.Join(db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode),
		db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables))
	if err != nil || tables == 0 {
		return "" // opening it will say what is wrong, or there is nothing in it
	}
	return mode
}

// tryFile acquires and releases a lock.
func tryFile(ctx context.Context, path string, o *Options) (err error) {
	s, err := OpenFile(ctx, path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r := store.Lease{Name: "leasehold-doctor/" + store.NewOwner(), Owner: store.NewOwner(), TTL: 10 * time.Second}
	if s.maxTTL > 0 {
		r.TTL = min(r.TTL, s.maxTTL)
	}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); err != nil {
		return err
	}
	return errors.Join(s.Renew(ctx, []store.Lease{r})[0], s.Release(ctx, store.ReleaseRequest{Lease: r}))
}
