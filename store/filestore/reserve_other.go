//go:build !linux

package filestore

import "os"

// reserve does nothing on this system.
func reserve(*os.File, int64) error { return nil }
