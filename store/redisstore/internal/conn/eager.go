package conn

import (
	"runtime"
	"time"
)

// eager has the reader of a client of one server look for answers a few times before it sleeps: a
// processor that sleeps takes longer to wake up than a server nearby takes to answer. Looks go on
// for as long as they find something. After a look in vain, which costs lookFor, one read sleeps
// at once, then three, and so on up to lookAfter. So a server far away, or one that waits for a
// processor, costs next to nothing.
//
// On two idle processors, with the server on the same machine, 1 goroutine makes 1.7 times the
// locks a second with it, 8 and 16 make 1.2 times. For each lock the client then takes 1.25, 0.9
// and 0.9 times the processor time.
type eager struct {
	skip int // how many reads sleep at once before the next look
	last int // what skip was after the last look
}

const (
	lookFor   = 100 * time.Microsecond
	lookAfter = 64
	// lookFew is for how many calls in flight the reader looks. With more, fewer would be sent and
	// answered at once: 64 goroutines made 0.85 times the locks.
	lookFew = 16
)

// looks reports whether to look before the next read sleeps, if so many calls are in flight.
func (e *eager) looks(inFlight int) bool {
	if inFlight == 0 || inFlight > lookFew {
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
