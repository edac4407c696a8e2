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
// So every process keeps the three files open while it has a store in them, and
// holds a shared flock on each. A flock ends with the process and belongs to the
// file itself, not to its name. A process that opens the store and finds the main
// file in use requires the log and the index beside it to be in use too. Before
// every step, each process checks that the names still lead to its three files,
// that none has shrunk, and that the main file has no second name, beside which
// there would be another log.

// logSuffix and indexSuffix are what SQLite adds to the name of the main file.
const (
	logSuffix   = "-wal"
	indexSuffix = "-shm"
)

// strayError reports a file that is not the one other processes have in use. The
// last of them may be just closing it, so openFile tries again.
type strayError struct {
	path, why string
	err       error // may be nil
}

func (e *strayError) Error() string {
	return fmt.Sprintf("the lock file is in use, but %s %s: put back what was removed or replaced, or end the processes that use it", e.path, e.why)
}

func (e *strayError) Unwrap() error { return e.err }

var (
	errOpening = errors.New("other processes kept opening the lock file until the time limit")
	errShrunk  = errors.New("it was emptied or shortened while in use: end all processes that use it")
)

// linkedError reports a main file with several names, each of which would have
// its own log beside it.
func linkedError(names uint64) error {
	return fmt.Errorf("it has %d names (hard links), and processes that use different ones do not exclude each other: remove all names but one", names)
}

// realPath returns path without symbolic links. SQLite keeps its other files
// beside that name.
func realPath(path string) (string, error) { return filepath.EvalSymlinks(path) }
