// Package asynq has periodic tasks of Asynq enqueued by one scheduler among several. Asynq
// asks that a single scheduler runs at a time, and leaves that to its users.
package asynq

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/leasehold-dev/leasehold"
)

// Scheduler enqueues periodic tasks between Start and Shutdown.
type Scheduler interface {
	Start() error
	Shutdown()
}

var (
	_ Scheduler = (*asynq.Scheduler)(nil)
	_ Scheduler = (*asynq.PeriodicTaskManager)(nil)
)

// Run makes the caller a candidate of e, and runs a scheduler while it leads. It blocks
// until ctx ends, or e.Run returns for another reason, with the error of e.Run.
//
// Each term has a scheduler of its own, made by newScheduler, since Asynq's cannot start
// twice. When the term ends, Run shuts it down, which waits for tasks that are being
// enqueued, and only then resigns. If leadership is lost, LockOptions.Notice of the
// election is the time for that. If newScheduler or Start fails, Run resigns and contends
// again after a pause, as e.Run does.
//
// No tick is enqueued twice while one scheduler leads. A new leader whose clock is behind
// can enqueue the last tick once more, and so can a process that was stopped when the tick
// came, in the moment in which it goes on. The ticks between two leaders are left out. The
// option asynq.Unique keeps the first two from happening, with a time longer than the clocks
// differ and longer than processes are stopped.
func Run(ctx context.Context, e *leasehold.Election, newScheduler func() (Scheduler, error)) error {
	return e.Run(ctx, func(ctx context.Context, _ *leasehold.Lease) error {
		s, err := newScheduler()
		if err != nil {
			return err
		}
		if err := s.Start(); err != nil {
			return err
		}
		<-ctx.Done()
		s.Shutdown()
		return context.Cause(ctx)
	})
}
