//go:build !unix

package filestore

import (
	"context"
	"fmt"
	"os"
)

// anchor is a lock file that this process has open. On this system a file in use
// cannot be removed or renamed, so there is less to guard against.
type anchor struct{ info os.FileInfo }

func openAnchor(path string) (*anchor, error) {
	info, err := os.Stat(path)
	return &anchor{info}, err
}

func (a *anchor) release() {}

func (a *anchor) settle(_ context.Context, _ string, open, _ func() error) error { return open() }

// intact returns an error if path is no longer this file.
func (a *anchor) intact(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("it cannot be found any more: %w", err)
	case !os.SameFile(a.info, info):
		return errReplaced
	case info.Size() < leastDatabase:
		return errShrunk
	}
	return nil
}

func (a *anchor) single() error { return nil }

// turnstile returns nil: the locks of this system keep other processes from reading.
func (a *anchor) turnstile() *turnstile { return nil }
