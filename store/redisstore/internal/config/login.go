package config

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// Login returns the commands that begin a connection to a and have to succeed. It asks
// for the credentials if they are not in the URL.
func (o Config) Login(ctx context.Context, a Address) ([][]byte, error) {
	if o.Credentials != nil {
		var err error
		if a.Username, a.Password, err = o.Credentials(ctx); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
		}
	}
	commands := a.Auth()
	if a.db != 0 {
		commands = append(commands, resp.Command("SELECT", strconv.Itoa(a.db)))
	}
	return commands, nil
}

// ErrCredentials is why a connection was not made if Credentials fails.
var ErrCredentials = errors.New("no credentials for the server")

// Auth returns the AUTH command, if there is a password.
func (a Address) Auth() [][]byte {
	switch {
	case a.Username != "":
		return [][]byte{resp.Command("AUTH", a.Username, a.Password)}
	case a.Password != "":
		return [][]byte{resp.Command("AUTH", a.Password)}
	}
	return nil
}
