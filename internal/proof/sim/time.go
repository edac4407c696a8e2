package sim

import (
	"container/heap"
	"sync/atomic"
	"time"
)

// True time is counted from the beginning of the run. It is the bubble's time
// plus all that was slept through: while the clients' machines are suspended
// their timers stand still, which are the bubble's, and the rest of the world
// goes on.

// The actions of the run happen at instants that nothing else in the run shares:
// goroutines woken at the same nanosecond would run in an order that nobody can
// repeat. All that production code does with durations keeps whole
// milliseconds (TTLs are chosen so), so instants are told apart by what they
// are beyond whole milliseconds: the driver's events take one part of them in
// turn, each worker has its own small part of the rest.
const (
	grain       = time.Millisecond
	eventLanes  = 500_000
	eventStride = 7919 // coprime with eventLanes: each lane comes once in a turn
	workerLanes = 20_000
	workerStep  = 4_000 // longer than what an instant leads to takes; see clock.Simulated
)

// event is something that happens outside of the clients' code.
type event struct {
	due  time.Duration
	kind eventKind
	do   func()
}

type eventKind uint8

const (
	// outside happens in the world: a message reaches a node, a node restarts.
	outside eventKind = iota
	// arrival happens at a client, for reasons outside of it.
	arrival
	// timer is one of a client: it stands still with the machine.
	timer
)

// agenda is a heap of events, the earliest on top.
type agenda []event

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].due < a[j].due }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(event)) }
func (a *agenda) Pop() any {
	old := *a
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*a = old[:len(old)-1]
	return e
}

// timeline is the time of a run, and what is planned.
type timeline struct {
	began  time.Time
	slept  atomic.Int64 // how much true time is ahead of the bubble's
	agenda agenda
	lane   int
}

// timerNow is the bubble's time.
func (t *timeline) timerNow() time.Duration { return time.Since(t.began) }

// now is the true time.
func (t *timeline) now() time.Duration { return time.Since(t.began) + time.Duration(t.slept.Load()) }

// at has do happen at start, or up to a millisecond later, at an instant of its
// own, which it returns.
func (t *timeline) at(start time.Duration, k eventKind, do func()) time.Duration {
	t.lane = (t.lane + eventStride) % eventLanes
	due := start - start%grain + time.Duration(t.lane)
	if due < start {
		due += grain
	}
	heap.Push(&t.agenda, event{due: due, kind: k, do: do})
	return due
}

// after is at, d from now.
func (t *timeline) after(d time.Duration, k eventKind, do func()) time.Duration {
	return t.at(t.now()+d, k, do)
}

// doze suspends all client machines for d. Events outside happen now, in their order.
// Messages to clients wait until they wake up, and so do their timers, with as much left as
// they had.
func (t *timeline) doze(d time.Duration) {
	end := t.now() + d.Truncate(grain)
	var timers, arrivals []event
	for len(t.agenda) > 0 && t.agenda[0].due <= end {
		e := heap.Pop(&t.agenda).(event)
		switch e.kind {
		case outside:
			t.slept.Add(int64(e.due - t.now()))
			e.do()
		case arrival:
			arrivals = append(arrivals, e)
		case timer:
			timers = append(timers, e)
		}
	}
	t.slept.Add(int64(end - t.now()))
	for i := range t.agenda {
		if t.agenda[i].kind == timer {
			t.agenda[i].due += d.Truncate(grain)
		}
	}
	heap.Init(&t.agenda)
	for _, e := range timers {
		e.due += d.Truncate(grain)
		heap.Push(&t.agenda, e)
	}
	for _, e := range arrivals {
		end = t.at(end, arrival, e.do)
	}
}
