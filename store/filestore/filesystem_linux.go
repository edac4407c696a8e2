package filestore

import "golang.org/x/sys/unix"

// networkFileSystems names, by the kernel's number, file systems on which locks
// and shared memory do not reach from one machine to another.
var networkFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC:   "NFS",
	unix.SMB_SUPER_MAGIC:   "SMB",
	unix.SMB2_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC:  "SMB",
	unix.V9FS_MAGIC:        "9P",
	unix.AFS_SUPER_MAGIC:   "AFS",
	unix.AFS_FS_MAGIC:      "AFS",
	unix.CEPH_SUPER_MAGIC:  "Ceph",
	unix.CODA_SUPER_MAGIC:  "Coda",
	unix.OCFS2_SUPER_MAGIC: "OCFS2",
	unix.NCP_SUPER_MAGIC:   "NCP",
	0x0bd00bd0:             "Lustre",
	0x01161970:             "GFS2",
	0x47504653:             "GPFS",
	0x19830326:             "BeeGFS",
}

// networkFileSystem returns the kind of network file system that path is on, or
// "".
func networkFileSystem(path string) string {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return ""
	}
	return networkFileSystems[int64(uint32(st.Type))]
}

// freeSpace returns how many bytes this user may still write to the disk of path.
func freeSpace(path string) (bytes uint64, known bool) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
