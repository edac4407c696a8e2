package filestore

import (
	"os"
	"path/filepath"
)

// Rights are inherited from the directory here, and not in the mode bits.

func exposed(os.FileInfo) string { return "" }

func replaceable(os.FileInfo) string { return "" }

// slashed is an absolute path as a URI has it: C:\a becomes /C:/a.
func slashed(path string) string { return "/" + filepath.ToSlash(path) }
