// Package callback runs functions that a user supplies, which may panic, end their
// goroutine or block. The client keeps to three rules, so that nothing is left behind
// then:
//
//   - None is called while a mutex is held. The Clock is, and must not panic.
//   - On a caller's goroutine a panic goes up to the caller, and deferred functions give
//     up what the call would have returned.
//   - On a goroutine of the client it is recovered and logged. This package does that.
package callback

import (
	"log/slog"
	"runtime/debug"
)

// Guard runs functions on goroutines of the client. It is safe for concurrent use. The
// zero Guard is ready for use.
type Guard struct {
	// Log receives what ended a function; nil: slog.Default, so that a panic does not go
	// unseen for lack of a Logger.
	Log *slog.Logger
}

// Run calls f and blocks until f has returned. If f panics or ends the goroutine, Run
// logs that with its stack and calls failed, unless that is nil. A panic does not leave
// Run.
func (g Guard) Run(f, failed func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		g.log(recover(), debug.Stack())
		if failed != nil {
			failed()
		}
	}()
	f()
	returned = true
}

// log logs what ended a function: a panic with that value, or runtime.Goexit if it is
// nil. The Logger may fail as well.
func (g Guard) log(value any, stack []byte) {
	defer func() { recover() }()
	log := g.Log
	if log == nil {
		log = slog.Default()
	}
	if value == nil {
		value = "runtime.Goexit"
	}
	log.Error("a function given to the client panicked", "panic", value, "stack", string(stack))
}
