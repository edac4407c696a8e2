package zkstore

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// explain adds what to do about an error that only a person can mend.
func explain(err error, path string) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("no right to what the store needs at %s: give this identity the rights cdrwa there: %w", path, err)
	case errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("the server refuses the ACL for %s: is the connection authenticated, and are the readers written as scheme and ID? %w", path, err)
	case errors.Is(err, zk.ErrAuthFailed):
		return fmt.Errorf("the server does not accept the identity: %w", err)
	}
	return err
}
