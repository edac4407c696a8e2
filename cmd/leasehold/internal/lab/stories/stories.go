// Package stories replays well-known failures of distributed locks. Each is
// played first on a weak design, which must fail, and then on ours.
//
// As much as possible is real: processes of Redis, etcd and ZooKeeper, clients in processes of
// their own that are killed and stopped, and a network that holds data back. The
// outcome of a part is observed, never assumed. It is an error if a weak design
// does not fail, and the story says what ours does not prevent.
package stories

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// Outcome is how a part of a story ended.
type Outcome string

// The outcomes.
const (
	// Failed means that the lock failed, as a weak design must.
	Failed Outcome = "failed"
	// Held means that the lock excluded all others.
	Held Outcome = "held"
	// Guarded means that the lock did not prevent the failure, but that the
	// resource refused the late write by its fencing token.
	Guarded Outcome = "guarded"
	// Broken means that the lock failed on our design, which must not happen.
	Broken Outcome = "broken"
)

// Story is one failure.
type Story struct {
	Name    string // one word
	Title   string // one line
	Summary string // the failure, in a few sentences
	Weak    Part
	Ours    []Part
}

// Part is a story played on one design.
type Part struct {
	Design string // what the design is, in a sentence or two
	play   func(*stage) ending
}

// ending is how a play ended, and why.
type ending struct {
	outcome Outcome
	words   string
}

// Config says how to play stories.
type Config struct {
	// Command returns a process that will call Act. Tell sets its input and
	// output.
	Command func() *exec.Cmd
	// Tell, if not nil, is called with every event as it happens, one at a time.
	Tell func(Event)

	unguarded bool   // for tests: resources do not look at tokens
	etcd      string // for tests: the server to start, instead of the installed one
}

// ErrNotAsTold means that the weak design did not fail, or that ours was not
// safe.
var ErrNotAsTold = errors.New("the story did not end as expected")

// ErrLeftOut means that a story needs a server besides Redis, or a version of it, that is
// not installed.
var ErrLeftOut = errors.New("the story needs what is not installed")

// patience bounds one part. It takes a few seconds unless the machine is busy.
const patience = 2 * time.Minute

// Run plays the story on the weak design, then on ours. It blocks until the story
// is over, which takes some seconds, or ctx ends. The error matches ErrNotAsTold
// if the story ended differently, localredis.ErrNotInstalled if there is no Redis
// server to start, and ErrLeftOut if the story needs another one that is missing. Any other error says why the story could not be replayed.
func (s Story) Run(ctx context.Context, c Config) error {
	if c.Tell == nil {
		c.Tell = func(Event) {}
	}
	end, err := s.play(ctx, c, Weak, s.Weak)
	if err != nil {
		return err
	}
	if end.outcome != Failed {
		return fmt.Errorf("%s: %w: the weak design did not fail: %s", s.Name, ErrNotAsTold, end.words)
	}
	for _, p := range s.Ours {
		end, err := s.play(ctx, c, Ours, p)
		if err != nil {
			return err
		}
		if end.outcome != Held && end.outcome != Guarded {
			return fmt.Errorf("%s: %w: Leasehold was not safe: %s", s.Name, ErrNotAsTold, end.words)
		}
	}
	return nil
}

// firstTTL is the TTL of leases in a story, unless the machine is too slow.
const firstTTL = time.Second

// play plays one part. If the machine was too slow for the leases, it plays the
// part again with longer ones.
func (s Story) play(ctx context.Context, c Config, part string, p Part) (ending, error) {
	for ttl := firstTTL; ; ttl *= 2 {
		t := newTimeline(s.Name, part, c.Tell)
		t.add(Begin, "", "%s", p.Design)
		end, err := perform(ctx, c, t, ttl, p.play)
		if errors.Is(err, errTooSlow) && ttl < 8*firstTTL {
			t.add(Note, "", "The machine was too slow for leases of %v: playing again with longer ones.", ttl)
			continue
		}
		if err != nil {
			return ending{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		t.put(Event{Kind: End, What: end.words, Outcome: end.outcome})
		return end, nil
	}
}
