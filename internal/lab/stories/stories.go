// Package stories replays the failures that are told of distributed locks: each
// first on the weak design it is told of, which has to fail, then on ours.
//
// What can be real is real: redis-server processes, clients that are processes
// of their own and are killed and stopped, a network that holds back what is
// sent. How a part ended is observed, never assumed: a weak design that does not
// fail is an error, and what ours does not prevent is said.
package stories

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// Outcome is how a part of a story ended.
type Outcome string

// The outcomes. Failed and Broken are the same seen from two sides: the first
// is what a weak design is there to show, the second must not happen to ours.
const (
	Failed Outcome = "failed"
	// Held: the lock did what locks are for.
	Held Outcome = "held"
	// Guarded: the lock could not prevent it, or did not; the resource, which
	// looks at the fencing token, refused the late write.
	Guarded Outcome = "guarded"
	Broken  Outcome = "broken"
)

// Story is one failure.
type Story struct {
	Name  string // one word
	Title string // one line
	Told  string // what is told of it, in a few sentences
	Weak  Part
	Ours  []Part
}

// Part is a story on one design.
type Part struct {
	Design string // what the design is, in a sentence or two
	play   func(*stage) ending
}

// ending is how a play ended, and in words why.
type ending struct {
	outcome Outcome
	words   string
}

// Config says how stories are told.
type Config struct {
	// Command makes a process that will call Act. Its input and output are set
	// by Tell.
	Command func() *exec.Cmd
	// Tell is told every event as it happens, one at a time. Nil: nobody is.
	Tell func(Event)

	unguarded bool // for tests: resources do not look at tokens
}

// All are the stories, from the simplest to the subtlest.
func All() []Story {
	return []Story{
		setnx, setnxExpire, deleteAnybody, outlived, clientClocks, ids,
		failover, crash, clockJump, pauseBefore, pauseAfter, delayedPacket,
	}
}

// Find returns the story of that name.
func Find(name string) (Story, bool) {
	all := All()
	i := slices.IndexFunc(all, func(s Story) bool { return s.Name == name })
	if i < 0 {
		return Story{}, false
	}
	return all[i], true
}

// ErrNotAsTold: the weak design did not fail, or ours was not safe.
var ErrNotAsTold = errors.New("the story did not go as it is told")

// patience bounds one part. It takes a few seconds unless the machine is busy.
const patience = 2 * time.Minute

// Run plays the story: the weak design, then ours. It blocks until it is over,
// some seconds, or ctx ends. The error matches ErrNotAsTold if it went another
// way, localredis.ErrNotInstalled if there is no Redis server to start, and
// otherwise says what kept it from being played at all.
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

// play plays one part. What depends on being quicker than a lease is tried
// again with longer leases if the machine was not.
func (s Story) play(ctx context.Context, c Config, part string, p Part) (ending, error) {
	for ttl := firstTTL; ; ttl *= 2 {
		t := newTimeline(s.Name, part, c.Tell)
		t.add(Begin, "", "%s", p.Design)
		end, err := perform(ctx, c, t, ttl, p.play)
		if errors.Is(err, errTooSlow) && ttl < 8*firstTTL {
			t.add(Note, "", "The machine was too slow for leases of %v: once more, with longer ones.", ttl)
			continue
		}
		if err != nil {
			return ending{}, fmt.Errorf("%s: %w", s.Name, err)
		}
		t.put(Event{Kind: End, What: end.words, Outcome: end.outcome})
		return end, nil
	}
}
