//go:build unix

package filestore

import (
	"fmt"
	"os"
	"syscall"
)

// exposed says why users other than that of this process can write a file. It
// returns "" if they cannot. The administrator always can.
func exposed(info os.FileInfo) string {
	if why := foreign(info); why != "" {
		return why
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Sprintf("users other than its owner can write it (%v)", mode)
	}
	return ""
}

// foreign says that a file or directory belongs to a user other than this one and
// the administrator. It returns "" if it does not.
func foreign(info os.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Sprintf("it belongs to another user (uid %d, this process is %d)", st.Uid, os.Geteuid())
	}
	return ""
}

// replaceable says why other users can replace files in a directory. It returns
// "" if they cannot. The directory's owner always can. Anybody else with the
// right to write it can, unless the sticky bit limits them to their own files.
// Write access for the group is accepted: on many systems every user has a group
// of its own, and directories are created with it.
func replaceable(dir os.FileInfo) string {
	if why := foreign(dir); why != "" {
		return why
	}
	if dir.Mode().Perm()&0o002 != 0 && dir.Mode()&os.ModeSticky == 0 {
		return fmt.Sprintf("anybody can replace files in it (%v)", dir.Mode())
	}
	return ""
}
