package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// classify turns the failure of a connection into an outcome and an error that contains
// no secret. The argument timeout is how long the client waited.
func classify(err error, timeout time.Duration) (store.Outcome, error) {
	var said *resp.Error
	switch {
	case errors.As(err, &said):
		return script.Classify(said)
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
