package filestore

import (
	"context"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
)

// turnstile lets the processes that write to the file take turns. SQLite gives its lock to
// a process that asks at the right microsecond, so one that writes again and again
// keeps all others out. A process that finds the file busy enters the turnstile and leaves it
// when it has written. Others that ask for a lock give way until then. Releases and renewals
// do not: others wait for these.
//
// Two processes that want one lock pass it on 2,200 times a second with it, and 560 times
// without (BenchmarkHandOff). It is a courtesy and excludes nobody: others go past a process
// that was stopped in it. Nil is no turnstile.
type turnstile struct {
	// set locks or unlocks it for this process, and fails if another process has it.
	set func(in bool) error
	// taken reports whether another process has it.
	taken func() bool
	// past is until when this process does not give way. It is used by one writer at a time.
	past clock.Instant
}

// passage is the way of one writer through the turnstile, or of none.
type passage struct {
	t      *turnstile
	polite bool // it gives way
	tries  int
	in     bool
}

// try is called before each attempt to write.
func (p *passage) try(ctx context.Context) {
	switch {
	case p.t == nil:
	case p.tries == 0:
		if p.polite {
			p.t.giveWay(ctx)
		}
	case !p.in:
		p.in = p.t.set(true) == nil
	}
	p.tries++
}

// leave is called after the last attempt.
func (p *passage) leave() {
	if p.in {
		_ = p.t.set(false) // fails only if the file is closed, which unlocks it
	}
}

// giveWay waits while another process is in the turnstile. That takes less than a millisecond,
// unless the process was stopped.
func (t *turnstile) giveWay(ctx context.Context) {
	const patience, stopped = 24, 100 * time.Millisecond
	if clock.System().Now() < t.past {
		return
	}
	for i := 0; t.taken(); i++ {
		if i == patience {
			t.past = clock.System().Now().Add(stopped)
			return
		}
		pause(ctx, min(i, naps-1))
	}
}
