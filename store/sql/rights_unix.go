//go:build unix

package sqlstore

import (
	"fmt"
	"os"
	"syscall"
)

// exposed says why others than the user of this process can write a file; empty
// when they can not. The administrator always can.
func exposed(info os.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() && st.Uid != 0 {
		return fmt.Sprintf("it belongs to another user (uid %d, this process is %d)", st.Uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Sprintf("others than its owner can write it (%v)", mode)
	}
	return ""
}

// open says whether anybody can replace files in a directory. Where its sticky
// bit is set they can only replace their own. Write access for the group is
// left alone: on many systems every user is a group, and directories come with it.
func open(dir os.FileInfo) bool {
	return dir.Mode().Perm()&0o002 != 0 && dir.Mode()&os.ModeSticky == 0
}

func slashed(path string) string { return path }
