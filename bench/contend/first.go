package contend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
)

// What becomes of the first in line before the lock is given back.
const (
	Alive  = "alive"
	Killed = "killed"         // kill -9
	Hasty  = "killed at once" // before it has stood there for long
	Frozen = "frozen"         // SIGSTOP
)

// Fates are all of them.
var Fates = []string{Alive, Killed, Hasty, Frozen}

// standing is how long those who wait have done so before anything happens. A
// process that waits for the first time has connections to make.
const standing = 500 * time.Millisecond

// First has a process hold a lock, a second and then a third one wait for it,
// lets something become of the second, has the lock given back, and returns how
// long it took from then until somebody had it: the second if it is alive, the
// third otherwise. Those who wait have places of that TTL. Leasehold only.
func (s Service) First(ctx context.Context, lock, fate string, ttl time.Duration) (time.Duration, error) {
	if s.Kind.Role != locks.Ours {
		return 0, errors.New("only Leasehold says when it stands in line")
	}
	keeper, err := Contest{Service: s, Lock: lock}.keeper(ctx)
	if err != nil {
		return 0, err
	}
	defer keeper.End()
	stand := Spec{Do: Stand, Kind: s.Kind.Name, Addrs: s.Addrs, Lock: lock, TTL: ttl}
	line, err := Muster(ctx, []Spec{stand, stand})
	if err != nil {
		return 0, err
	}
	defer line.End()
	for _, m := range line {
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
	next := line[1]
	switch fate {
	case Alive:
		next = line[0]
	case Killed, Hasty:
		line[0].Kill()
	case Frozen:
		if err := line[0].Freeze(); err != nil {
			return 0, err
		}
	}
	before, err := keeper.release()
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
