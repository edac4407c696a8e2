package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// classify turns the failure of a connection into an outcome and an error that contains
// no secret. The argument timeout is how long the client waited.
func classify(err error, timeout time.Duration) (store.Outcome, error) {
	var said *refused
	switch {
	case errors.As(err, &said):
		return classifyReply(string(*said))
	case errors.Is(err, context.Canceled), errors.Is(err, store.ErrClosed):
		return store.Unreachable, store.ErrClosed
	case errors.Is(err, errSilent), isTimeout(err):
		// Not wrapped: the caller's own deadline has not passed.
		silence := fmt.Errorf("no answer within %v", timeout)
		if scheme := new(schemeError); errors.As(err, &scheme) {
			silence = &schemeError{silence, scheme.hint}
		}
		return store.TimedOut, silence
	case errors.Is(err, errNoSlotMap), errors.Is(err, errSameServer), errors.Is(err, errUnfit), errors.Is(err, errUnidentified):
		return store.Refused, err
	}
	return store.Unreachable, err
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// classifyReply turns an error reply into an outcome and an error that says what to do.
// Older servers put other words before the code of an error inside a script, so the code
// may be anywhere in the reply.
func classifyReply(reply string) (store.Outcome, error) {
	if d := readRedirection(reply); d != nil {
		return d.outcome(), d
	}
	for _, k := range []struct {
		code, advice string
		outcome      store.Outcome
	}{
		{"WRONGTYPE", "the key holds something that is not a lock: choose another name, or delete the key", store.WrongType},
		{"LOADING", "the server is still reading its data: wait until it is up", store.Loading},
		{"WRONGPASS", "check the user name and the password", store.Refused},
		{"NOAUTH", "the server requires a password: put it into the URL, as in redis://:PASSWORD@HOST", store.Refused},
		{"NOPERM", "the user lacks a permission: see the ACL rule in the documentation", store.Refused},
		{deniedInScript, "the user lacks a permission: see the ACL rule in the documentation", store.Refused},
		{"OOM", "the server is out of memory (maxmemory)", store.Refused},
		{"READONLY", "the server is a replica: use its master, or independent masters for a quorum", store.Refused},
		{"MISCONF", "the server refuses writes because it cannot save its data", store.Refused},
		{"MASTERDOWN", "the server is a replica that lost its master", store.Refused},
		{"cluster support disabled", "the server is not in a cluster: use a redis:// URL", store.Refused},
		{"BUSY", "the server is busy running another client's script", store.Refused},
	} {
		if strings.Contains(reply, k.code) {
			return k.outcome, fmt.Errorf("%s (%s)", store.Excerpt(reply), k.advice)
		}
	}
	return store.Refused, errors.New(store.Excerpt(reply))
}

const deniedInScript = "The user executing the script can't"

// isDenied reports whether an error reply is about a missing permission. Older servers
// word it differently inside scripts.
func isDenied(reply string) bool {
	return strings.Contains(reply, "NOPERM") || strings.Contains(reply, deniedInScript)
}
