package locks

import (
	"context"
	"time"
)

// patience is how long Insist tries. A machine with other work stands still for longer
// than a server may take to answer.
const patience = 30 * time.Second

// Insist calls lock until it succeeds or half a minute has passed, and returns its last
// error. It is for locks whose speed is not measured. It blocks as long as lock does.
func Insist(ctx context.Context, lock func(context.Context) error) error {
	for end := time.Now().Add(patience); ; {
		err := lock(ctx)
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
