package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/conn"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// Classify turns the failure of a connection into an outcome and an error that contains
// no secret. The argument timeout is how long the client waited.
func Classify(err error, timeout time.Duration) (store.Outcome, error) {
	var said *resp.Error
	var unusable *script.Unusable
	switch {
	case errors.As(err, &said):
		return script.Classify(said)
	case errors.Is(err, context.Canceled), errors.Is(err, store.ErrClosed):
		return store.Unreachable, store.ErrClosed
	case errors.Is(err, config.ErrCredentials):
		return store.Refused, err
	case errors.Is(err, conn.ErrSilent), conn.IsTimeout(err):
		// Not wrapped: the caller's own deadline has not passed.
		silence := fmt.Errorf("no answer within %v", timeout)
		if scheme := new(conn.SchemeError); errors.As(err, &scheme) {
			silence = &conn.SchemeError{Err: silence, Hint: scheme.Hint}
		}
		return store.TimedOut, silence
	case errors.As(err, &unusable):
		return store.Refused, err
	}
	return store.Unreachable, err
}
