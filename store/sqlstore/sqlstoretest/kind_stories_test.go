package sqlstoretest

import (
	"time"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// semaphores and readWrites are the kinds of the stories, which their steps name by index.
var (
	semaphores = []rule.Spec{rule.Semaphore(3), rule.Mutex, rule.Semaphore(2)}
	readWrites = []rule.Spec{{Limit: 3, Shared: true}, rule.Mutex}
)

const (
	short = 5 * time.Second
	long  = 20 * time.Second
)

func (s kindStep) of(specs []rule.Spec) kindStep {
	s.specs = specs
	return s
}

func (s kindStep) as(which int) kindStep {
	s.which = which
	return s
}

func (s kindStep) barging() kindStep {
	s.barge = true
	return s
}

// does returns a step of an owner for a semaphore of 3. Methods of kindStep change the kind.
func does(owner int, op string, weight int64, d time.Duration) kindStep {
	return kindStep{op: op, specs: semaphores, owner: owner, weight: weight, d: d, is: true}
}

// kindStories has lists of steps that catch mistakes which lists drawn by chance rarely catch.
var kindStories = [][]kindStep{
	// A lease and a place end when their TTL is over, and no later.
	{does(0, "try", 3, short), does(1, "wait", 1, long), does(0, "pass", 0, short), does(1, "look", 0, long)},
	{does(0, "try", 3, long), does(1, "wait", 3, short), does(2, "wait", 1, long), does(0, "pass", 0, short), does(2, "look", 0, long)},
	// A place is refreshed and not shortened.
	{does(0, "try", 3, long), does(1, "wait", 1, long), does(1, "wait", 1, short)},
	{does(0, "try", 3, long), does(1, "wait", 1, short), does(0, "pass", 0, time.Second), does(1, "look", 0, short)},
	// A lease is not shortened, and does not grow.
	{does(0, "try", 1, long), does(0, "renew", 0, short), does(0, "try", 1, short), does(0, "try", 2, long)},
	// An attempt is not undone by another one.
	{{op: "try", specs: semaphores, weight: 1, d: long, attempt: "i"}, {op: "undo", specs: semaphores, attempt: "ii"}, {op: "undo", specs: semaphores, attempt: "i"}},
	// The room of a waiter that barges is left until the next step.
	{does(0, "try", 3, long), does(1, "wait", 1, long).barging(), does(2, "wait", 3, long), does(0, "release", 0, 0), does(2, "look", 0, long)},
	// A break is such a step, also if it breaks nothing.
	{does(0, "try", 1, long).as(1), does(1, "wait", 1, long).as(1).barging(), does(2, "wait", 1, long).as(1), does(0, "release", 0, 0), does(3, "break", 0, 0)},
	{does(0, "try", 3, long), does(1, "wait", 1, long).barging(), does(2, "wait", 3, long), does(0, "release", 0, 0), does(3, "break", 0, 0)},
	{does(0, "try", 3, short), does(1, "wait", 1, long), does(0, "pass", 0, short), does(3, "break", 0, 0)},
	{does(0, "try", 1, short).as(1), does(1, "wait", 1, long).as(1), does(0, "pass", 0, short), does(3, "break", 0, 0)},
	// The owner of a mutex that was broken is refused, also if it asks for another kind.
	{does(0, "try", 1, long).as(1), does(0, "break", 0, 0), does(0, "try", 1, long)},
	// A waiter that asks for less overtakes no other.
	{does(0, "try", 1, long), does(1, "wait", 3, long), does(2, "wait", 1, long), does(1, "wait", 1, long)},
	// The smallest slot is the next.
	{does(0, "try", 1, long), does(1, "try", 1, long), does(0, "release", 0, 0), does(2, "try", 1, long)},
	// A renewed lease keeps the name from being a mutex.
	{does(0, "try", 1, short), does(0, "renew", 0, long), does(0, "pass", 0, short), does(1, "try", 1, long).as(1)},
	// A semaphore is resized to a mutex and back.
	{does(0, "try", 1, long), {op: "resize", specs: semaphores, which: 0, other: 1}, does(1, "wait", 1, long).as(1), does(2, "wait", 1, long).as(1),
		does(0, "release", 0, 0), does(1, "look", 0, long), {op: "resize", specs: semaphores, which: 1, other: 2}, does(1, "renew", 0, long),
		does(2, "look", 0, long), does(2, "try", 1, long).as(2), does(1, "release", 0, 0)},
	{does(0, "try", 3, long), does(1, "wait", 1, long), {op: "resize", specs: semaphores, which: 0, other: 2}},
	{does(0, "try", 3, short), does(1, "wait", 1, long), does(0, "pass", 0, short), {op: "resize", specs: semaphores, which: 0, other: 2}, does(1, "look", 0, long)},
	// A lease that was broken is not renewed, and leaves a tombstone.
	{does(0, "try", 1, long), does(0, "break", 0, 0), does(0, "renew", 0, long), does(0, "try", 1, long), does(0, "release", 0, 0), does(0, "try", 1, long)},
	{does(0, "try", 1, long).as(1), does(0, "break", 0, 0), does(0, "renew", 0, long), does(0, "reserve", 0, 0), {op: "break", specs: semaphores, set: true, is: true}, does(1, "try", 1, long).as(1)},
	{does(0, "try", 1, long), {op: "break", specs: semaphores}},
	// Readers enter with the writer that became one.
	{does(0, "try", 3, long).of(readWrites), does(1, "wait", 1, long).of(readWrites), does(0, "downgrade", 0, long).of(readWrites), does(1, "look", 0, long).of(readWrites)},
}
