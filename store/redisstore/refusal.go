package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// classify turns the failure of a connection into an outcome and an error that contains
// no secret. The argument timeout is how long the client waited.
func classify(err error, timeout time.Duration) (store.Outcome, error) {
	var said *resp.Error
	switch {
	case errors.As(err, &said):
		return classifyReply(said)
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

// advices say what each error reply means for a lock, and what to do.
var advices = map[resp.Code]struct {
	advice  string
	outcome store.Outcome
}{
	resp.WrongType:     {"the key holds something that is not a lock: choose another name, or delete the key", store.WrongType},
	resp.Loading:       {"the server is still reading its data: wait until it is up", store.Loading},
	resp.WrongPassword: {"check the user name and the password", store.Refused},
	resp.NoAuth:        {"the server requires a password: put it into the URL, as in redis://:PASSWORD@HOST", store.Refused},
	resp.Denied:        {"the user lacks a permission: see the ACL rule in the documentation", store.Refused},
	resp.OutOfMemory:   {"the server is out of memory (maxmemory)", store.Refused},
	resp.ReadOnly:      {"the server is a replica: use its master, or independent masters for a quorum", store.Refused},
	resp.CannotSave:    {"the server refuses writes because it cannot save its data", store.Refused},
	resp.MasterDown:    {"the server is a replica that lost its master", store.Refused},
	resp.NoCluster:     {"the server is not in a cluster: use a redis:// URL", store.Refused},
	resp.Busy:          {"the server is busy running another client's script", store.Refused},
}

// classifyReply turns an error reply into an outcome and an error that says what to do.
func classifyReply(reply *resp.Error) (store.Outcome, error) {
	if d := readRedirection(reply); d != nil {
		return d.outcome(), d
	}
	if a, ok := advices[reply.Code()]; ok {
		return a.outcome, fmt.Errorf("%w (%s)", reply, a.advice)
	}
	return store.Refused, reply
}

// isDenied reports whether err is an error reply about a missing permission.
func isDenied(err error) bool { return resp.CodeOf(err) == resp.Denied }
