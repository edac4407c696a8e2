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

// creating keeps those who create the file apart from those who open it in this
// process: closing any descriptor of a file drops all locks that the process
// has on it by other descriptors, and SQLite's are of that sort.
var creating sync.Mutex

// prepareFile sees to it that there is a file at path that SQLite can be given,
// and returns the path made absolute:
// with rights for its owner only if it had to be created, and with rights that
// are not too wide if it was there.
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

// leastDatabase is the size of the smallest page SQLite can have. It takes any
// smaller file for an empty one and writes over it.
const leastDatabase = 512

// directory says what is wrong with that of the file at path, if it is not there:
// whoever mistyped it would have locks that nobody else asks for.
func directory(path string) error {
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: make it, if the path is right", dir)
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
	// Where it exists it is not opened, see creating.
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("it is a directory: name a file in it")
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is not a regular file (%v)", info.Mode().Type())
	case info.Size() > 0 && info.Size() < leastDatabase:
		return nil, errors.New("it is not an SQLite database: name another file, or move this one away")
	}
	return info, nil
}

const shareAdvice = "; if it is shared on purpose, say so (Options.Shared, or shared=true in its URL)"

// privateDir refuses a directory in which others could replace the file.
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

// private refuses what others could have tampered with.
func private(path string, info os.FileInfo) error {
	if why := exposed(info); why != "" {
		return errors.New(why + ": whoever can write it can take and end every lock" + shareAdvice)
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
			return fmt.Errorf("%s beside it is not the work of its owner (%v, %s): delete it", filepath.Base(real)+beside, info.Mode(), why)
		}
	}
	return privateDir(filepath.Dir(real)) // prepareFile has seen to that of path
}
