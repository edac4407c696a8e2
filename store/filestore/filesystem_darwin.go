package filestore

import "golang.org/x/sys/unix"

// networkFileSystem is the kind of network file system that path is on, if so.
func networkFileSystem(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil || st.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}

// freeSpace is how many bytes this user may still write to the disk of path.
func freeSpace(path string) (bytes uint64, known bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
