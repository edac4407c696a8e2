package contend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
)

// The fates of the first waiter before the lock is released.
const (
	Alive  = "alive"
	Killed = "killed"         // kill -9
	Hasty  = "killed at once" // as it joins the queue
	Frozen = "frozen"         // SIGSTOP
)

// Fates has all of these.
var Fates = []string{Alive, Killed, Hasty, Frozen}

// standing is how long the waiters wait before anything happens, because a process that
// waits for the first time has to connect.
const standing = 500 * time.Millisecond

// First makes one process hold a lock, and a second and then a third wait for it. It
// applies fate to the second, releases the lock, and returns the time until a waiter
// has it: the second if it is alive, the third otherwise. The places of the waiters
// have that TTL. It works with Leasehold only.
func (s Service) First(ctx context.Context, lock, fate string, ttl time.Duration) (time.Duration, error) {
	if s.Kind.Role != locks.Ours {
		return 0, errors.New("only Leasehold reports its place in the queue")
	}
	holder, err := Contest{Service: s, Lock: lock}.holder(ctx)
	if err != nil {
		return 0, err
	}
	defer holder.End()
	stand := Spec{Do: Stand, Kind: s.Kind.Name, Addrs: s.Addrs, Lock: lock, TTL: ttl}
	queue, err := Start(ctx, []Spec{stand, stand})
	if err != nil {
		return 0, err
	}
	defer queue.End()
	for _, m := range queue {
		if _, err := fmt.Fprintln(m.in); err != nil {
			return 0, err
		}
		if err := m.hear(waiting); err != nil {
			return 0, err
		}
	}
	if fate != Hasty {
		if err := sleepUntil(ctx, Now()+int64(standing)); err != nil {
			return 0, err
		}
	}
	next := queue[1]
	switch fate {
	case Alive:
		next = queue[0]
	case Killed, Hasty:
		queue[0].Kill()
	case Frozen:
		if err := queue[0].Freeze(); err != nil {
			return 0, err
		}
	}
	before, err := holder.release()
	if err != nil {
		return 0, err
	}
	after, err := next.one()
	if err != nil {
		return 0, err
	}
	if after.Got < before.Freed {
		return 0, fmt.Errorf("two processes held lock %q at once", lock)
	}
	return time.Duration(after.Got - before.Freed), nil
}
