//go:build !linux && !darwin

package filestore

// networkFileSystem is not known on this system.
func networkFileSystem(string) string { return "" }

// freeSpace is not known on this system.
func freeSpace(string) (bytes uint64, known bool) { return 0, false }
