package filestore

import "os"

// Rights are inherited from the directory here, and not in the mode bits.

func exposed(os.FileInfo) string { return "" }

func replaceable(os.FileInfo) string { return "" }
