package contend

import "time"

// Arg makes the program a worker: main calls Main then.
const Arg = "contend"

// The tasks of a worker.
const (
	Loop  = "loop"  // take the lock and release it, over and over
	Keep  = "keep"  // take the lock, say so, and release it when told to
	Stand = "stand" // Leasehold only: say when it waits in the queue, and hold once
)

// Spec is the task of a worker.
type Spec struct {
	Do         string
	Kind       string // of locks
	Addrs      []string
	Lock       string // its name
	Goroutines int
	Hold       time.Duration // how long a turn takes
	TTL        time.Duration // of the waiters
}

// The messages between a worker and its parent, one line each. A worker ends when its
// input ends, as it does when the parent is gone.
const (
	ready   = "ready"   // the client is open
	held    = "held"    // the lock is
	waiting = "waiting" // in the queue
	release = "release"
)

// span tells a worker when to begin, and which window will be measured.
type span struct{ Begin, From, To int64 }

// heading is the first line of a worker's results. The turns follow it, goroutine by
// goroutine.
type heading struct {
	Turns  []int         // of each goroutine
	Asking []int64       // since when each was waiting at the end, or 0
	CPU    time.Duration // in the window
	GaveUp int
	Errors int
	Failed string
}
