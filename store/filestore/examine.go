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

// FileExamination is what ExamineFile found out about a lock file: facts, from
// which somebody else draws conclusions.
type FileExamination struct {
	// Path is absolute.
	Path string
	// Missing says that there is no file yet. What follows is then about the
	// directory it would be made in.
	Missing bool
	// Shared is what the options said.
	Shared bool
	// Exposed is how others than the user could tamper with the file, nil if
	// they cannot.
	Exposed error
	// Network is the kind of network file system it is on, empty for a local
	// one or where that is not known.
	Network string
	// Free is how many bytes are left on its disk, if FreeKnown.
	Free      uint64
	FreeKnown bool
	// Journal is SQLite's journal mode as it was found, "wal" after the first
	// use; empty where there was nothing to ask.
	Journal string
	// Unusable is why no lock can be taken and given back there.
	Unusable error
}

// ExamineFile finds out what there is to know about the lock file at path,
// without making it if it is not there. A file that is there is opened as
// OpenFile does, and a lock is taken and given back, of a name that nobody else
// uses. It blocks like OpenFile. An error means that path cannot name a file,
// or that ctx has ended. o may be nil.
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

// existing is the nearest directory above that is there.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// writable says why nothing can be made in a directory.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".leasehold-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// journalMode asks before the store is opened, which changes it.
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

// tryFile takes a lock and gives it back.
func tryFile(ctx context.Context, path string, o *Options) (err error) {
	s, err := OpenFile(ctx, path, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r := store.Request{Name: "leasehold-doctor/" + store.NewOwner(), Owner: store.NewOwner(), TTL: 10 * time.Second}
	if s.maxTTL > 0 {
		r.TTL = min(r.TTL, s.maxTTL)
	}
	if _, err := s.Acquire(ctx, r); err != nil {
		return err
	}
	return errors.Join(s.Renew(ctx, []store.Request{r})[0], s.Release(ctx, r))
}
