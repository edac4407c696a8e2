package sqltest

import (
	"fmt"
	"os"
	osuser "os/user"
	"strconv"
	"strings"
	"syscall"
)

// user is the account that a server runs as. Without cred it is that of this
// process.
type user struct{ cred *syscall.Credential }

// account finds an account to run a server as. Most database servers refuse to run as
// root; one without names does not.
func account(names []string) (user, error) {
	if os.Getuid() != 0 || len(names) == 0 {
		return user{}, nil
	}
	for _, name := range names {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return user{}, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return user{}, err
		}
		return user{&syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return user{}, fmt.Errorf("the server does not run as root, and there is no user %s: run the tests as another user", strings.Join(names, " or "))
}

// own makes the user the owner of a file.
func (u user) own(path string) error {
	if u.cred == nil {
		return nil
	}
	return os.Chown(path, int(u.cred.Uid), int(u.cred.Gid))
}

// attr returns how to start a process as the user. If its parent dies, it gets SIGQUIT,
// because a PostgreSQL that is killed leaves shared memory behind.
func (u user) attr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: u.cred, Pdeathsig: syscall.SIGQUIT}
}
