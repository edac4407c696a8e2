//go:build unix

package filestore

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// fileID identifies a file, whatever its name.
type fileID struct{ dev, ino uint64 }

// fileState is what a step needs to know of the log.
type fileState struct {
	id    fileID
	links uint64
	size  int64
}

func stateOf(st *unix.Stat_t) fileState {
	return fileState{fileID{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink), st.Size}
}

// look returns the state of the file with a name.
func look(path string) (fileState, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return fileState{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return stateOf(&st), nil
}

// lookAt returns the state of a file that is open.
func lookAt(f *os.File) (fileState, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return fileState{}, &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
	}
	return stateOf(&st), nil
}

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_APPEND|unix.O_NOFOLLOW, 0)
}
