package conn

import (
	"runtime"
	"time"
)

// eager has the reader of a client of one server look for answers a few times before it sleeps: a
// processor that sleeps takes longer to wake up than a server nearby takes to answer. Looks go on
// for as long as they find something. After a look in vain, which costs lookFor, one read sleeps
// at once, then three, and so on up to lookAfter. So a server that waits for a processor costs next to
// nothing, and one that has never answered within lookFor costs nothing.
//
// On two processors, with the server on the same machine, 1 goroutine makes 1.7 times the locks a
// second with it, and 32 and 64 make 1.3 times. Go polls sockets only when a processor has no goroutine
// left to run. Without the looks, the reader comes to the first answers after all others, and the server
// has nothing to do meanwhile. Each lock takes 1.25 times the client's processor time with 1 goroutine,
// and 0.8 to 0.95 times with 32 and more.
type eager struct {
	skip int // how many reads sleep at once before the next look
	last int // what skip was after the last look
}

const (
	lookFor   = 100 * time.Microsecond
	lookAfter = 64
)

// looks reports whether to look before the next read of answers sleeps. The quickest answer so far
// took as long as the argument.
func (e *eager) looks(quickest time.Duration) bool {
	if quickest >= lookFor {
		return false
	}
	if e.skip > 0 {
		e.skip--
		return false
	}
	return true
}

// found records whether a look has found something.
func (e *eager) found(some bool) {
	if some {
		e.last = 0
	} else {
		e.last = min(2*e.last+1, lookAfter)
	}
	e.skip = e.last
}

// look reads what raw receives; ok is false if nothing comes in time.
func (e *eager) look(raw *direct, b []byte) (n int, ok bool, err error) {
	for begun := time.Now(); time.Since(begun) < lookFor; runtime.Gosched() {
		if n, ok, err = raw.ReadNow(b); ok || err != nil {
			e.found(true)
			return n, ok, err
		}
	}
	e.found(false)
	return 0, false, nil
}
