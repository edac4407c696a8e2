package filestore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasehold-dev/leasehold/store"
)

// The folders in the folder of locks.
const (
	logDir      = "log"
	sessionsDir = "sessions"
)

func logger(o *Options) *slog.Logger { return cmp.Or(o.Logger, slog.New(slog.DiscardHandler)) }

// modes are the rights of what is made in a folder.
type modes struct{ file, dir fs.FileMode }

// modesOf returns the rights of what is made in a folder. Only others that share it on purpose
// have any.
func modesOf(info fs.FileInfo, o *Options) modes {
	if !o.Shared {
		return modes{0o600, 0o700}
	}
	perm := info.Mode() & (fs.ModePerm | fs.ModeSetgid)
	return modes{perm & 0o666, perm}
}

// prepare checks the folder, makes it if it is missing, and returns its absolute path without
// symbolic links.
func prepare(dir string, o *Options) (abs string, m modes, err error) {
	if dir == "" || strings.IndexByte(dir, 0) >= 0 {
		return "", m, fmt.Errorf("%w: lock folder %q: the path is empty or has a NUL byte in it", store.ErrInvalid, dir)
	}
	abs, err = filepath.Abs(dir) // the process may change its directory later
	if err != nil {
		return "", m, fmt.Errorf("lock folder %s: %w", dir, err)
	}
	path := abs
	info, err := find(abs, o)
	if err == nil && info == nil {
		err = os.Mkdir(abs, 0o700)
		if err == nil || errors.Is(err, fs.ErrExist) {
			info, err = find(abs, o)
		}
	}
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err == nil {
		err = local(networkFileSystem(abs))
	}
	if err == nil && !o.Shared {
		err = private(abs, info)
	}
	if err == nil {
		m = modesOf(info, o)
		err = furnish(abs, m)
	}
	if err != nil {
		return "", m, fmt.Errorf("lock folder %s: %w", path, err)
	}
	return abs, m, nil
}

// find returns what is known of the folder, or nil if it is missing and can be made.
func find(dir string, o *Options) (fs.FileInfo, error) {
	parent := filepath.Dir(dir)
	if o.MakeDir {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return nil, err
		}
	} else if err := directory(parent); err != nil {
		return nil, err
	}
	if !o.Shared {
		if err := privateDir(parent); err != nil { // before a folder is made there
			return nil, err
		}
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		switch it, err := os.Lstat(dir); {
		case err != nil:
			return nil, nil
		case it.Mode().Type() == fs.ModeSymlink:
			return nil, errors.New("it is a symbolic link to something that is not there")
		}
		return find(dir, o) // another process has made it meanwhile
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errors.New("it is not a directory: name one of its own for the locks")
	case isFolder(dir):
		return info, nil
	}
	names, err := readNames(dir)
	for _, name := range names {
		if name != logDir && name != sessionsDir && err == nil {
			err = fmt.Errorf("it has files of something else (%q): name a directory of its own for the locks", name)
		}
	}
	return info, err
}

// furnish makes the folders in the folder.
func furnish(dir string, m modes) error {
	for _, name := range []string{sessionsDir, logDir} { // the last one says that all are there
		path := filepath.Join(dir, name)
		switch err := os.Mkdir(path, 0o700); {
		case err == nil && m.dir != 0o700:
			if err := os.Chmod(path, m.dir); err != nil {
				return err
			}
		case err != nil && !errors.Is(err, fs.ErrExist):
			return err
		}
	}
	return nil
}

// local returns an error if there is a kind of network file system.
func local(network string) error {
	if network == "" {
		return nil
	}
	return fmt.Errorf("it is on a network file system (%s), which does not put what several machines append in one order: use a disk of this machine, or a server", network)
}

// directory returns an error if dir is missing. A mistyped path would give locks that exclude
// nobody.
func directory(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: create it if the path is right", dir)
	}
	return nil
}

const shareAdvice = "; if it is shared on purpose, say so (Options.Shared, or shared=true in its URL)"

// privateDir returns an error if other users could replace what is in dir.
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

// private returns an error if other users could have tampered with the folder. dir has no
// symbolic links.
func private(dir string, info fs.FileInfo) error {
	if why := exposed(info); why != "" {
		return errors.New(why + ": every user that can write it can take and end every lock" + shareAdvice)
	}
	for _, name := range []string{logDir, sessionsDir} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if why := exposed(info); why != "" || !info.IsDir() {
			return fmt.Errorf("%s in it was not made by its owner (%v, %s): delete it", name, info.Mode(), why)
		}
	}
	return privateDir(filepath.Dir(dir)) // find has checked that of the path
}
