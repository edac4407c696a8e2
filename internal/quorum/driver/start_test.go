package driver

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// questioned is a node that takes calls, or none, and answers when the test wants.
type questioned struct {
	calls []Call[Question]
	full  error
}

func (n *questioned) Addr() string { return "node" }

func (n *questioned) Put(c Call[Question]) error {
	if n.full == nil {
		n.calls = append(n.calls, c)
	}
	return n.full
}

func (n *questioned) Flush() {}

// answer answers the oldest call.
func (n *questioned) answer(a Reply) {
	c := n.calls[0]
	n.calls = n.calls[1:]
	c.To.Receive(0, c.Tag, a)
}

// begun is a call of either kind that was started.
type begun struct {
	node *questioned

	mu   sync.Mutex
	ends []error
}

func (b *begun) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends = append(b.ends, err)
}

// ended returns the outcomes by now.
func (b *begun) ended() []error {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ends
}

var starts = map[string]func(ctx context.Context, k *Driver[Question], done func(error)){
	"acquire": func(ctx context.Context, k *Driver[Question], done func(error)) {
		r := store.AcquireRequest{Lease: store.Lease{Name: "a", Owner: "o", TTL: time.Minute}}
		k.StartAcquire(ctx, r, func(_ store.Grant, err error) { done(err) })
	},
	"release": func(_ context.Context, k *Driver[Question], done func(error)) {
		k.StartRelease(store.ReleaseRequest{Lease: store.Lease{Name: "a", Owner: "o", TTL: time.Minute}}, done)
	},
}

var (
	granted = Reply{Kind: quorum.Yes, Token: 7, Report: store.NodeOutcome{Outcome: store.Granted}}
	unknown = Reply{Kind: quorum.Unknown, Report: store.NodeOutcome{Outcome: store.TimedOut}}
)

// each starts a call of each kind twice, the second time in the memory of the first, and checks
// that act has ended it once, with an outcome that fits.
func each(t *testing.T, full error, ctx context.Context, act func(b *begun), fits func(error) bool) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				k, _ := recorders(clock.Func(func() clock.Instant { return clock.Instant(time.Since(began)) + 1 }), nil)
				for range 2 {
					b := &begun{node: &questioned{full: full}}
					k.Nodes = []Node[Question]{b.node}
					start(ctx, k, b.end)
					k.Flush()
					act(b)
					if ended := b.ended(); len(ended) != 1 || !fits(ended[0]) {
						t.Errorf("it has ended with %v, want one outcome that fits", ended)
					}
					for len(b.node.calls) > 0 {
						b.node.answer(unknown)
					}
				}
			})
		})
	}
}

// A call that was started ends once: when the node has answered, when it has taken too long, and
// if it could not be sent.
func TestStartedCallsEndOnce(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		each(t, nil, t.Context(), func(b *begun) {
			if len(b.ended()) > 0 {
				t.Error("it has ended before the node answered")
			}
			b.node.answer(granted)
			time.Sleep(time.Hour)
		}, func(err error) bool { return err == nil })
	})
	t.Run("silent", func(t *testing.T) {
		each(t, nil, t.Context(), func(b *begun) {
			time.Sleep(49 * time.Millisecond)
			if len(b.ended()) > 0 {
				t.Error("it has ended before its time was over")
			}
			time.Sleep(2 * time.Millisecond)
			if len(b.ended()) != 1 {
				t.Errorf("it has ended %d times when its time was over, want once", len(b.ended()))
			}
			b.node.answer(granted) // too late
		}, func(err error) bool { return errors.Is(err, store.ErrQuorum) })
	})
	t.Run("not sent", func(t *testing.T) {
		each(t, errors.New("too many requests wait for it"), t.Context(), func(b *begun) { time.Sleep(time.Hour) },
			func(err error) bool { return errors.Is(err, store.ErrQuorum) })
	})
}

// The grant to an attempt is released again if its time was over, or its context has ended.
func TestStartedAttemptIsCleanedUp(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for name, ctx := range map[string]context.Context{"late": t.Context(), "given up": ended} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				k, _ := recorders(clock.Func(func() clock.Instant { return clock.Instant(time.Since(began)) + 1 }), nil)
				node := &questioned{}
				k.Nodes = []Node[Question]{node}
				got := make(chan error, 1)
				starts["acquire"](ctx, k, func(err error) { got <- err })
				if ctx.Err() == nil {
					time.Sleep(time.Second)
				}
				node.answer(granted)
				if err := <-got; err == nil || ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
					t.Errorf("the attempt ended with %v, want an error and the context's", err)
				}
				if len(node.calls) != 1 || node.calls[0].Payload.Op != quorum.Release {
					t.Errorf("the node was sent %+v, want a release of what it granted", node.calls)
				}
			})
		})
	}
}
