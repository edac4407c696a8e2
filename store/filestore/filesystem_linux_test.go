package filestore

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestFileSystems(t *testing.T) {
	if free, known := freeSpace(t.TempDir()); !known || free == 0 {
		t.Errorf("free: %d, %v", free, known)
	}
	if _, known := freeSpace("/does/not/exist"); known || networkFileSystem("/does/not/exist") != "" {
		t.Error("what does not exist has a file system")
	}
	if got := networkFileSystem("/proc"); got != "" {
		t.Errorf("/proc is on %s", got)
	}
	// By the numbers that the kernel has for them, whatever the sign they come with.
	for magic, want := range map[int64]string{unix.NFS_SUPER_MAGIC: "NFS", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x01021997: "9P"} {
		if got := networkFileSystems[magic]; got != want {
			t.Errorf("%x: %q, want %q", magic, got, want)
		}
	}
}
