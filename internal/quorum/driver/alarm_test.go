package driver

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
)

// An attempt ends by its node timeout although its memory has the alarm of an earlier one, set for
// later: timers stand still while the machine is suspended.
func TestAlarmOfAnEarlierAttempt(t *testing.T) {
	lease := func() store.Lease { return store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute} }
	for name, before := range map[string]func(context.Context, *Driver[Question]){
		"attempt": func(ctx context.Context, k *Driver[Question]) { k.Acquire(ctx, store.AcquireRequest{Lease: lease()}) },
		"wait": func(ctx context.Context, k *Driver[Question]) {
			ctx, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			k.Wait(ctx, store.WaitRequest{Lease: lease()}, nil)
		},
	} {
		for _, suspended := range []time.Duration{0, 30 * time.Millisecond, time.Second, 18990 * time.Millisecond, time.Hour} {
			t.Run(name+" "+suspended.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					var slept, silent atomic.Int64
					now := clock.Func(func() clock.Instant { return clock.Instant(time.Since(began)) + clock.Instant(slept.Load()) + 1 })
					k, _ := recorders(now, func(node int, q Question) (Reply, bool) {
						r, _ := isTaken(node, q)
						return r, silent.Load() == 0
					})
					for range 20 { // a pool does not return all that it was given
						silent.Store(0)
						before(t.Context(), k)
						synctest.Wait()
						slept.Add(int64(suspended))
						silent.Store(1)
						asked := time.Now()
						if _, err := k.Acquire(t.Context(), store.AcquireRequest{Lease: lease()}); !errors.Is(err, store.ErrQuorum) {
							t.Errorf("silent nodes granted the lock: %v", err)
						}
						if took := time.Since(asked); took != 50*time.Millisecond {
							t.Fatalf("it ended after %v, want the node timeout", took)
						}
					}
				})
			})
		}
	}
}

// blocked is a node that does not answer, and whose inline reader only an interruption ends.
type blocked struct {
	silent
	interrupted chan struct{}
}

func (n *blocked) ReadInline(context.Context, <-chan struct{}, func() bool) { <-n.interrupted }
func (n *blocked) InterruptInline()                                         { close(n.interrupted) }
func (n *blocked) Listen()                                                  {}

// The node timeout ends a call whose caller reads inline.
func TestAlarmInterruptsTheInlineReader(t *testing.T) {
	lease := store.Lease{Name: "a", Owner: store.NewOwner(), TTL: time.Minute}
	for name, call := range map[string]func(context.Context, *Driver[[]Question]) error{
		"attempt": func(ctx context.Context, k *Driver[[]Question]) error {
			_, err := k.Acquire(ctx, store.AcquireRequest{Lease: lease})
			return err
		},
		"ballot": func(ctx context.Context, k *Driver[[]Question]) error {
			return k.Release(ctx, store.ReleaseRequest{Lease: lease})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				k := &Driver[[]Question]{
					Nodes:       []Node[[]Question]{&blocked{interrupted: make(chan struct{})}},
					Encode:      func(q Question, _ []Question) []Question { return []Question{q} },
					NodeTimeout: func(time.Duration) time.Duration { return time.Second },
					Clock:       clock.Func(func() clock.Instant { return clock.Instant(time.Since(began)) + 1 }),
				}
				if err := call(t.Context(), k); !errors.Is(err, store.ErrQuorum) || time.Since(began) != time.Second {
					t.Errorf("it ended after %v with %v, want ErrQuorum after 1s", time.Since(began), err)
				}
			})
		})
	}
}
