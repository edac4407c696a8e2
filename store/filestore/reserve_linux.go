package filestore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve has the disk keep room for a file that grows to a size, where it can.
func reserve(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return &os.PathError{Op: "reserve", Path: f.Name(), Err: err}
	}
	return nil
}
