//go:build unix

package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// OpenStates makes the folder of states, unless it is there, and keeps other servers from it until
// the caller calls done. The end of the process does that, too.
func OpenStates(dir string) (done func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// Filesystems that know no flock leave it to the operator.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fmt.Errorf("another server keeps its states in %s: end it first, or give each server a folder of its own", dir)
	}
	return func() { f.Close() }, nil
}
