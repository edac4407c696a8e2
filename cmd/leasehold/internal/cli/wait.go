package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/voice"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/spf13/cobra"
)

func waitCommand(p *program) *cobra.Command {
	var most time.Duration
	c := &cobra.Command{
		Use:   "wait NAME",
		Short: "Wait until nobody holds a lock, without taking it",
		Long: `Waits until nobody holds the lock NAME, and exits. It takes nothing, and is not in the
queue: if others wait for the lock, they are granted it first, and the lock may be held
again by the time you act. To do something only while nobody else does, use "leasehold
run". A lock of any kind will do; it is free when it has no holder at all.

While some of several servers do not answer, it can depend on them whether a lease is
held. The lock then counts as held until the servers decide, or until the lease would
have expired whatever they say.

The store is asked up to four times a second, and when the holder's lease is about to
end.

Exit codes: 0 if nobody holds the lock, 124 if it is still held after --for, or may be,
125 if leasehold itself failed, and 128+N if signal N ended the wait.`,
		Example:           `  leasehold wait migrations --for 5m && ./start-server`,
		Args:              oneName,
		ValidArgsFunction: p.completeOneName,
		RunE: func(c *cobra.Command, args []string) error {
			if err := store.CheckName(args[0]); err != nil {
				return err
			}
			if most < 0 {
				return usage(c, "%w", negative("for", most))
			}
			return waitFree(p, c, args[0], most, c.Flags().Changed("for"))
		},
	}
	c.Flags().DurationVar(&most, "for", 0, "give up after that `TIME`; 0 looks once (default: wait forever)")
	return c
}

// waitFree runs "leasehold wait", for the time most at the longest if it is bounded.
func waitFree(p *program, c *cobra.Command, name string, most time.Duration, bounded bool) error {
	ctx, stop := listen().during(context.Background())
	err := askWith(p, ctx, c, false, func(ctx context.Context, st *store.Store) error {
		if bounded && most == 0 {
			return isFree(p, ctx, st, name)
		}
		var until time.Time
		if bounded {
			until = time.Now().Add(most)
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, until)
			defer cancel()
		}
		w := voice.NewWaiting(p.voice, name, most)
		defer w.End()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		because := func(reason error) {
			if nested(reason) {
				cancel(nestedError(name))
				return
			}
			w.Because(reason)
		}
		err := client(p, st).Operator().WaitFree(ctx, name, because)
		switch {
		case err == nil:
		case bounded && !time.Now().Before(until):
			err = gaveUp(err, most)
		case ctx.Err() != nil && context.Cause(ctx) != ctx.Err():
			err = context.Cause(ctx)
		}
		return err
	})
	if sig := stop(); sig != 0 {
		return endedBy(sig)
	}
	var busy *leasehold.BusyError
	if errors.As(err, &busy) {
		after := ""
		if most > 0 {
			after = fmt.Sprintf(": gave up after %v", most)
		}
		p.voice.Note("%v", busyError(busy, after))
		return &exitError{code: codeBusy}
	}
	return err
}

// isFree returns a *BusyError if the lock is held, or may be held.
func isFree(p *program, ctx context.Context, st *store.Store, name string) error {
	s, err := st.Inspect(ctx, name)
	if err != nil || s.Free() {
		return err
	}
	return s.InUse()
}
