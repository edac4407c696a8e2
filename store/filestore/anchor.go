package filestore

import (
	"errors"
	"fmt"
	"path/filepath"
)

// A lock file is three files: the main one, SQLite's log (-wal), which has the
// last commits, and the log's index (-shm), by which processes find them. Locks
// hold only between processes that use the same three. Removing the log under a
// process makes SQLite give the next one a new, empty log: both would then grant
// the same lock.
//
// So every process keeps the three open while it has a store in them, and keeps
// a shared flock on each, which ends with the process and belongs to the file
// itself, not to a name of it. A newcomer that finds the main file in use
// demands that the log and the index beside it are in use too. A process that is
// in looks before every step whether the names still lead to its three files and
// none has shrunk, and whether the main file has got a second name, beside
// which another log would lie.

// logSuffix and indexSuffix are what SQLite adds to the name of the main file.
const (
	logSuffix   = "-wal"
	indexSuffix = "-shm"
)

// strayError is about a file that is not the one which processes have in use.
// It may be that the last of them is just closing it, so openFile tries again.
type strayError struct {
	path, why string
	err       error // may be nil
}

func (e *strayError) Error() string {
	return fmt.Sprintf("the lock file is in use, but %s %s: put back what was removed or replaced, or end the processes that use it", e.path, e.why)
}

func (e *strayError) Unwrap() error { return e.err }

var (
	errOpening = errors.New("another process has been opening the lock file all the time")
	errShrunk  = errors.New("it was emptied or shortened while in use: end everything that uses it")
)

// linkedError is about a main file with several names, each of which would have
// a log of its own beside it.
func linkedError(names uint64) error {
	return fmt.Errorf("it has %d names (hard links), and processes that use different ones do not exclude each other: remove all names but one", names)
}

// realPath is the name beside which SQLite keeps its other files.
func realPath(path string) (string, error) { return filepath.EvalSymlinks(path) }
