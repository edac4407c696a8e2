package differential

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/leasehold-dev/leasehold/store"
)

// ByStore executes the commands that every store knows.
func ByStore(s *store.Store, c Command) (Answer, error) {
	ctx := context.Background()
	// A store refuses a release without a TTL. These leave no tombstone.
	r := store.Lease{Name: c.Lock, Owner: c.Owner.ID, Meta: c.Owner.Meta, TTL: cmp.Or(c.TTL, unit)}
	var busy *store.BusyError
	switch c.Op {
	case Acquire:
		g, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
		switch {
		case err == nil:
			return Answer{Verdict: Done, Token: uint64(g.Token)}, nil
		case errors.As(err, &busy):
			return Answer{Verdict: Taken, Holder: busy.Holder.Owner, Left: busy.ExpiresIn}, nil
		case errors.Is(err, store.ErrNotHeld):
			return Answer{Verdict: Buried}, nil
		}
		return Answer{}, err
	case Extend:
		return answerOf(s.Renew(ctx, []store.Lease{r})[0])
	case Release:
		return answerOf(s.Release(ctx, store.ReleaseRequest{Lease: r}))
	}
	return Answer{}, fmt.Errorf("a store cannot execute %v", c.Op)
}

func answerOf(err error) (Answer, error) {
	switch {
	case err == nil:
		return Answer{Verdict: Done}, nil
	case errors.Is(err, store.ErrNotHeld):
		return Answer{Verdict: NotHeld}, nil
	}
	return Answer{}, err
}
