package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/leasehold-dev/leasehold/store"
)

// creating prevents this process from creating the file while it opens it.
// Closing any descriptor of a file drops all POSIX locks that the process has on
// it through other descriptors, and SQLite uses those.
var creating sync.Mutex

// prepareFile checks the file at path, creates it if it is missing, and returns
// its absolute path. A new file is accessible to its owner only. An existing one
// is refused if its rights are too wide, unless Options.Shared is set.
func prepareFile(path string, o *Options) (string, error) {
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return "", fmt.Errorf("%w: lock file %q: the path is empty or has a NUL byte in it", store.ErrInvalid, path)
	}
	abs, err := filepath.Abs(path) // the process may change its directory later
	if err != nil {
		return "", fmt.Errorf("lock file %s: %w", path, err)
	}
	creating.Lock()
	defer creating.Unlock()
	if o.MakeDir {
		err = os.MkdirAll(filepath.Dir(abs), 0o700)
	} else {
		err = directory(abs)
	}
	if err == nil && !o.Shared {
		err = privateDir(filepath.Dir(abs)) // before a file is made there
	}
	var info os.FileInfo
	if err == nil {
		info, err = create(abs)
	}
	if err == nil && !o.Shared {
		err = private(abs, info)
	}
	if err != nil {
		return "", fmt.Errorf("lock file %s: %w", abs, err)
	}
	return abs, nil
}

// leastDatabase is SQLite's smallest page size. SQLite treats any smaller file as
// empty and overwrites it.
const leastDatabase = 512

// directory returns an error if the directory of the file at path is missing. A
// mistyped path would give locks that exclude nobody.
func directory(path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: create it if the path is right", dir)
	}
	return nil
}

func create(path string) (os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	switch {
	case err == nil:
		if err := f.Close(); err != nil {
			return nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return nil, err
	}
	// An existing file is not opened here; see creating.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory: name a file in it")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	case info.Size() > 0 && info.Size() < leastDatabase:
		return nil, errors.New("it is not an SQLite database: choose another file, or move this one away")
	}
	return info, nil
}

const shareAdvice = "; if it is shared on purpose, say so (Options.Shared, or shared=true in its URL)"

// privateDir returns an error if other users could replace the file in dir.
func privateDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if why := replaceable(info); why != "" {
		return fmt.Errorf("others can replace it in the directory %s: %s: use a directory of your own%s", dir, why, shareAdvice)
	}
	return nil
}

// private returns an error if other users could have tampered with the file or
// with those beside it.
func private(path string, info os.FileInfo) error {
	if why := exposed(info); why != "" {
		return errors.New(why + ": every user that can write it can take and end every lock" + shareAdvice)
	}
	real, err := realPath(path)
	if err != nil {
		return err
	}
	for _, beside := range []string{logSuffix, indexSuffix, "-journal"} {
		info, err := os.Lstat(real + beside)
		if err != nil {
			continue // usually it is not there
		}
		if why := exposed(info); why != "" || !info.Mode().IsRegular() {
			return fmt.Errorf("%s beside it was not made by its owner (%v, %s): delete it", filepath.Base(real)+beside, info.Mode(), why)
		}
	}
	return privateDir(filepath.Dir(real)) // prepareFile has checked that of path
}
