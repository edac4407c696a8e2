package filestore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Examination is what Examine found out about a lock folder. It has facts, not conclusions.
type Examination struct {
	// Path is the absolute path of the folder.
	Path string
	// Missing reports that there is no folder yet. The fields below are then about the directory
	// in which it would be created.
	Missing bool
	// Shared is Options.Shared.
	Shared bool
	// Exposed says how other users could tamper with the folder. It is nil if they cannot.
	Exposed error
	// Network is the kind of network file system that the folder is on. It is empty for a
	// local file system or an unknown one.
	Network string
	// Free is the number of bytes left on its disk, if FreeKnown is set.
	Free      uint64
	FreeKnown bool
	// Unusable says why a lock cannot be acquired and released in the folder. It is nil if it can.
	Unusable error
}

// Examine examines the lock folder that a URL and options name, as for Open. It does not create a
// missing one. It opens an existing one as Open does, and acquires and releases a lock with a unique
// name. It returns an error if the URL or the options are wrong, or if ctx has ended.
func Examine(ctx context.Context, url string, o *Options) (Examination, error) {
	dir, c, err := resolve(url, o)
	if err != nil {
		return Examination{}, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Examination{}, fmt.Errorf("%w: lock folder %q: the path cannot be made absolute: %v", store.ErrInvalid, dir, err)
	}
	e := Examination{Path: abs, Shared: c.Shared}
	info, err := os.Stat(abs)
	e.Missing = errors.Is(err, fs.ErrNotExist)
	at := abs
	if e.Missing {
		at = existing(filepath.Dir(abs))
	}
	e.Network = networkFileSystem(at)
	e.Free, e.FreeKnown = freeSpace(at)
	switch {
	case e.Network != "":
		return e, ctx.Err()
	case e.Missing:
		if !c.MakeDir {
			e.Unusable = directory(filepath.Dir(abs))
		}
		if at == filepath.Dir(abs) {
			e.Exposed = privateDir(at)
		}
		if e.Exposed != nil && !c.Shared {
			break
		}
		if e.Unusable == nil {
			e.Unusable = writable(at)
		}
	case err != nil:
		e.Unusable = err
	case info.IsDir():
		if e.Exposed = cmp.Or(privateDir(filepath.Dir(abs)), privateAt(abs, info)); e.Exposed != nil && !c.Shared {
			return e, ctx.Err()
		}
		fallthrough
	default:
		e.Unusable = try(ctx, abs, &c)
	}
	return e, ctx.Err()
}

// privateAt is private for a path that may have symbolic links.
func privateAt(path string, info fs.FileInfo) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	return private(real, info)
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

// writable returns an error if nothing can be created in dir.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".leasehold-doctor-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// try acquires and releases a lock.
func try(ctx context.Context, dir string, o *Options) (err error) {
	s, err := open(ctx, dir, o, thisMachine())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	r := store.Lease{Name: "leasehold-doctor/" + store.NewOwner(), Owner: store.NewOwner(), TTL: 10 * time.Second}
	if o.MaxTTL > 0 {
		r.TTL = min(r.TTL, o.MaxTTL)
	}
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: r}); err != nil {
		return err
	}
	return errors.Join(s.Renew(ctx, []store.Lease{r})[0], s.Release(ctx, store.ReleaseRequest{Lease: r}))
}
