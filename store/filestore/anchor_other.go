//go:build !unix

package filestore

import (
	"context"
	"fmt"
	"os"
)

// anchor is a lock file that is open here. On this system nobody can remove or
// rename a file that is in use, so there is less to look after.
type anchor struct{ info os.FileInfo }

func weigh(path string) (*anchor, error) {
	info, err := os.Stat(path)
	return &anchor{info}, err
}

func (a *anchor) lift() {}

func (a *anchor) settle(_ context.Context, _ string, open, _ func() error) error { return open() }

// intact says whether path is still this file.
func (a *anchor) intact(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("it is gone from under this process: %w", err)
	case !os.SameFile(a.info, info):
		return errReplaced
	case info.Size() < leastDatabase:
		return errShrunk
	}
	return nil
}

func (a *anchor) single() error { return nil }
