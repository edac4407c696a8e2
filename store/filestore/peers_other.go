//go:build !unix

package filestore

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
)

// pushes reports whether processes can ring each other.
const pushes = false

// peers are the processes that use a folder. On this system they do not know of each other.
type peers struct{}

func newPeers(string, fs.FileMode, bool, func(string), *slog.Logger) *peers { return &peers{} }

func (*peers) Session() string                    { return "" }
func (*peers) Ended(string) bool                  { return false }
func (*peers) ring(string, string)                {}
func (*peers) ringAll(string)                     {}
func (*peers) mark(uint64, fileID, int64)         {}
func (*peers) seen(uint64, fileID) (int64, error) { return 0, nil }
func (*peers) tether() (*os.File, error)          { return nil, errors.ErrUnsupported }
func (*peers) close()                             {}
