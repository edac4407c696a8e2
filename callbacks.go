package leasehold

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// Functions that the user supplies (Observer, OnWait, RetryDelay, Clock, the
// Logger's handler) may panic, end their goroutine, block, or call the Client.
// The package keeps to three rules, so that nothing is left behind then:
//
//   - Only the Clock is read while a mutex is held, by renewer.lock.
//   - On a caller's goroutine a panic goes up to the caller, and deferred
//     functions give up what the call would have returned.
//   - On the package's own goroutines it is recovered and logged.

// contain runs f on a goroutine of the package's own. If f panics or ends the
// goroutine, that is logged with its stack, and failed, unless nil, is called. A
// panic does not leave contain.
func (c *Client) contain(f, failed func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		c.logFailure(recover(), debug.Stack())
		if failed != nil {
			failed()
		}
	}()
	f()
	returned = true
}

// logFailure logs what ended a function of the user's: a panic with that value,
// or runtime.Goexit if it is nil. A panic does not go unseen for lack of a Logger.
// The Logger may fail as well.
func (c *Client) logFailure(value any, stack []byte) {
	defer func() { recover() }()
	log := c.log
	if !c.logs {
		log = slog.Default()
	}
	if value == nil {
		value = "runtime.Goexit"
	}
	log.Error("a function given to the client panicked", "panic", value, "stack", string(stack))
}

// notifier tells the Observer and the Logger what is found out while a mutex is
// held: one thing after the other, on a goroutine that is there only meanwhile.
type notifier struct {
	c       *Client
	mu      sync.Mutex
	pending []func()
	running bool
}

func (n *notifier) add(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pending = append(n.pending, f)
	if !n.running {
		n.running = true
		go n.run()
	}
}

func (n *notifier) run() {
	done := false
	defer func() {
		if !done { // the function ended this goroutine
			go n.run()
		}
	}()
	for {
		n.mu.Lock()
		if len(n.pending) == 0 {
			n.running, done = false, true
			n.mu.Unlock()
			return
		}
		f := n.pending[0]
		n.pending = n.pending[1:]
		n.mu.Unlock()
		n.c.contain(f, nil)
	}
}

// discard releases l, which nobody will be given, because a function of the
// user's failed just before.
func (l *Lease) discard() {
	c := l.h.c
	l.WaiveMinHold() // no work was done, so no run of it has to exclude others
	ctx := context.WithoutCancel(l.base)
	c.contain(func() { l.Release(ctx) }, nil)
}

// drop releases in the store what r was granted, when nothing else can be done
// about it.
func (c *Client) drop(ctx context.Context, r store.ReleaseRequest) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(max(r.TTL, time.Second), 5*time.Second))
	defer cancel()
	if err := c.store.Release(ctx, r); err != nil && !errors.Is(err, store.ErrNotHeld) {
		c.log.Warn("release: outcome unknown, the lock ends by its TTL", "lock", r.Name, "err", err)
	}
}
