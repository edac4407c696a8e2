package zkstore

import (
	"context"
	"errors"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store/zkstore/internal/zk"
)

// NotifyBroken implements driver.Engine. The store has one watch, from the first call on.
func (s *engine) NotifyBroken(f func(owner string)) (stop func()) {
	stop = s.audience.Add(f)
	s.listens.Do(func() {
		if s.gate.Enter() == nil {
			s.gate.Go(s.listen)
			s.gate.Leave()
		}
	})
	return stop
}

// listen follows the breaks in one session after the other, until the store is closed.
func (s *engine) listen() {
	ctx, cancel := s.gate.Until(context.Background())
	defer cancel()
	told := int64(0)
	for ctx.Err() == nil {
		if t, err := s.anyTree(ctx); err == nil {
			if told = s.follow(ctx, t, told); !t.Ended() {
				return // the server refuses: it would refuse again
			}
		}
		clock.Sleep(ctx, retryAfter)
	}
}

// follow tells the audience of each lease that is broken and has a larger number than told, and returns
// the last number. It ends if the session is over, ctx ends or the server refuses.
func (s *engine) follow(ctx context.Context, t tree, told int64) int64 {
	for {
		watch := zk.WatchExists(t.notesDir()) // it also tells when the node is made
		answers, err := t.Once(ctx, watch.Request())
		if err != nil || answers[0].Err != nil && !errors.Is(answers[0].Err, zk.ErrNoNode) && !zk.Broken(answers[0].Err) {
			return told
		}
		n, _, err := t.Get(ctx, t.notesDir())
		if err != nil {
			return told
		}
		now := decodeJSON[announced](n.Data)
		for _, owner := range now.since(told) {
			s.audience.Tell(owner)
		}
		told = now.Count
		select {
		case <-watch.Over:
		case <-t.Over:
			return told
		case <-ctx.Done():
			return told
		}
	}
}
