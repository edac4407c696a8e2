package filestore

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileSystems(t *testing.T) {
	if free, known := freeSpace(t.TempDir()); !known || free == 0 {
		t.Errorf("free space of a directory: %d, %v, want some", free, known)
	}
	if _, known := freeSpace("/does/not/exist"); known || networkFileSystem("/does/not/exist") != "" {
		t.Error("a missing file has a file system")
	}
	if got := networkFileSystem("/proc"); got != "" {
		t.Errorf("/proc is on %q, want no network", got)
	}
	// The kernel's numbers are found, also those that it returns as negative ones.
	for magic, want := range map[int64]string{unix.NFS_SUPER_MAGIC: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x01021997: "9P"} {
		if got := networkFileSystems[magic]; got != want {
			t.Errorf("%x: %q, want %q", magic, got, want)
		}
	}
}
