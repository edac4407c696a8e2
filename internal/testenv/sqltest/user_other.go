//go:build !linux

package sqltest

import (
	"errors"
	"os"
	"syscall"
)

// user is the account that a server runs as: that of this process.
type user struct{}

func account(names []string) (user, error) {
	if os.Getuid() == 0 && len(names) > 0 {
		return user{}, errors.New("the server does not run as root: run the tests as another user")
	}
	return user{}, nil
}

func (user) own(string) error { return nil }

func (user) attr() *syscall.SysProcAttr { return nil }
