// Package history records what processes of one machine did with locks, and
// decides whether locks that keep their promises can have behaved so.
//
// A process writes down each step before or after it takes it, so that what
// the file says is never more than what is certain: an acquire, and later its
// outcome; that it looked at its lease and found it good, when it began to
// look; a release, before it is sent. A process that is killed leaves its last
// step open, and open it stays: an attempt without an outcome may have taken
// effect or not, and a hold without a release ends when it ends.
//
// From that follow, for every lock, the spans of time in which a holder could
// rightly trust its lease. They must not overlap; tokens must rise; what
// holders wrote in time must reach the resource in the order of their tokens;
// and porcupine must find an order of all operations in which a plain lock, and
// a plain counter, would have given the same answers.
//
// A lock that several can hold is judged by the same spans: the weights of those that
// overlap must fit into its limit, and no two of them may have the same slot. Tokens
// are compared for each slot, and readers may share one.
package history

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Op is what happened.
type Op string

// The steps of an attempt, in the order in which they can come.
const (
	// Ask: the attempt is about to begin.
	Ask Op = "ask"
	// Granted: it got the lock. From is a moment before the request that was
	// granted had left.
	Granted Op = "granted"
	// Failed: it certainly did not, and leaves nothing behind.
	Failed Op = "failed"
	// Unknown: it did not, as far as the caller knows.
	Unknown Op = "unknown"
	// Trust: at At the holder began to look at its lease, found it good, valid
	// until Until at least, and wrote to the resource; at Done that was over.
	Trust Op = "trust"
	// Guarded: at At the holder asked the guard to accept a write, also after its hold; at
	// Done it had the answer. With an error the guard refused the token.
	Guarded Op = "guarded"
	// Extended: the holder extended it by hand.
	Extended Op = "extended"
	// Lost: the holder noticed that it had lost it.
	Lost Op = "lost"
	// Told: the holder was notified of the loss by the channel that the lease has for
	// that. Lost comes later, or earlier if the holder looked by itself.
	Told Op = "told"
	// Release: it is about to be released.
	Release Op = "release"
	// Released: that returned. With an error the lock may or may not be free.
	Released Op = "released"
)

// The kinds of events that a process records.
const (
	// Up: it can reach its store and begins.
	Up Op = "up"
	// Trouble: it cannot, or not yet.
	Trouble Op = "trouble"
	// Down: it has done all it began, and ends.
	Down Op = "down"
	// Freed: it is about to end the lease of Owner, as an operator who does not tell the
	// holder. The holder cannot know, and is told at its next renewal.
	Freed Op = "freed"
)

// Event is one line of a process's history.
type Event struct {
	Op Op            `json:"op"`
	At clock.Instant `json:"at"` // see Now

	// Which attempt: of which of the process's goroutines, and its number there.
	G    int `json:"g"`
	N    int `json:"n,omitempty"`
	Lock int `json:"lock"`

	// Waits, of Ask: it waits in the queue if somebody has the lock.
	Waits bool `json:"waits,omitempty"`
	// Again, of Ask: it goes on with the lease of another attempt, as a writer that becomes
	// a reader does.
	Again bool `json:"again,omitempty"`
	// Weight, of Ask: how much of the lock it wants. Zero means 1.
	Weight int64 `json:"weight,omitempty"`

	Token fence.Token   `json:"token,omitempty"`
	Owner string        `json:"owner,omitempty"`
	Slot  int64         `json:"slot,omitempty"`
	From  clock.Instant `json:"from,omitempty"`
	Until clock.Instant `json:"until,omitempty"`
	Done  clock.Instant `json:"done,omitempty"`
	Write int           `json:"write,omitempty"` // numbers the writes of an attempt, from 1
	// Denied: it was lost because the store said so, which may be some time
	// after it was so.
	Denied bool   `json:"denied,omitempty"`
	Err    string `json:"err,omitempty"`
}

// Recorder writes a process's history. It is safe for concurrent use. A line
// is handed to the system before Write returns, so it survives the process.
type Recorder struct {
	mu  sync.Mutex
	f   *os.File
	err error
}

// NewRecorder creates the file, which must not exist.
func NewRecorder(path string) (*Recorder, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &Recorder{f: f}, nil
}

// Write adds e. The first error stays, and is returned ever after: a history
// with a gap is worth nothing.
func (r *Recorder) Write(e Event) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = writeLine(r.f, e)
	}
	return r.err
}

// Close closes the file.
func (r *Recorder) Close() error { return r.f.Close() }

func writeLine(f *os.File, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("the history cannot be written: %w", err)
	}
	return nil
}
