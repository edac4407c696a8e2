//go:build unix

package filestore

import (
	"os/signal"

	"golang.org/x/sys/unix"
)

// limitFiles lets no file of this process grow beyond a size.
func limitFiles(size uint64) error {
	signal.Ignore(unix.SIGXFSZ)
	return unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size})
}
