//go:build !unix

package filestore

import (
	"os"
)

// fileID identifies a file. On this system a file in use cannot be replaced.
type fileID struct{}

// fileState is what a step needs to know of the log.
type fileState struct {
	id    fileID
	links uint64
	size  int64
}

// look returns the state of the file with a name.
func look(path string) (fileState, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return fileState{}, err
	}
	return fileState{links: 1, size: info.Size()}, nil
}

// lookAt returns the state of a file that is open.
func lookAt(f *os.File) (fileState, error) {
	info, err := f.Stat()
	if err != nil {
		return fileState{}, err
	}
	return fileState{links: 1, size: info.Size()}, nil
}

func openLog(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0) }
