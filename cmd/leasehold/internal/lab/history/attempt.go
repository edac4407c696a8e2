package history

import (
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// Attempt is one attempt to acquire a lock, and what became of it. Instants that
// never came are zero.
type Attempt struct {
	ID
	Lock     int
	Again    bool  // it goes on with the lease of another attempt
	Waits    bool  // in the queue, until it is its turn
	Weight   int64 // how much of the lock it wants
	Asked    clock.Instant
	From     clock.Instant // the request that was granted left after it; Asked, where not known better
	Answered clock.Instant
	Outcome  Op // Granted, Failed or Unknown
	Token    fence.Token
	Owner    string
	Slot     int64
	Looks    []Look
	Lost     clock.Instant
	Told     clock.Instant // of the loss, without asking
	Denied   bool
	Release  clock.Instant
	Released clock.Instant // only when the lock was certainly released
	Killed   clock.Instant // its process, when it was sent the signal
	Freed    clock.Instant // by an operator, who did not tell its holder
	Guarded  []Guard
	Over     bool   // the release returned, whatever it said
	Err      string // of the outcome, the loss or the release, whichever came last
}

// Look is one check of the lease by its holder that found it valid, followed by a
// write to the resource.
type Look struct {
	At, Until, Done clock.Instant
	Write           int
}

// Guard is what the guard of the resource said of one write.
type Guard struct {
	At, Done clock.Instant
	Refused  bool
}

func (a *Attempt) add(e Event) {
	if e.Op == Guarded {
		a.Guarded = append(a.Guarded, Guard{At: e.At, Done: e.Done, Refused: e.Err != ""})
		return
	}
	if e.Err != "" {
		a.Err = e.Err
	}
	switch e.Op {
	case Granted:
		a.Outcome, a.Answered, a.Token, a.Owner, a.Slot = Granted, e.At, e.Token, e.Owner, e.Slot
		a.From = max(a.From, e.From)
	case Failed, Unknown:
		a.Outcome, a.Answered = e.Op, e.At
	case Trust:
		a.Looks = append(a.Looks, Look{At: e.At, Until: e.Until, Done: e.Done, Write: e.Write})
	case Lost:
		a.Lost, a.Denied = e.At, e.Denied
	case Told:
		a.Told = e.At
	case Release:
		a.Release = e.At
	case Released:
		a.Over = true
		if e.Err == "" {
			a.Released = e.At
		}
	}
}

// Trusted is the time in which the holder could rightly trust its lease, and
// why it ended. It is never more than is certain, so of two attempts of a lock
// that keeps its promise the times do not overlap. It is false if none is
// certain.
//
// It begins when the grant had come back. It ends with the validity that the
// holder had seen, unless the holder noticed a loss before, began to give the
// lock back, or was killed. Where the store itself said that the lock was gone,
// only what the holder had found before counts.
func (a *Attempt) Trusted() (from, to clock.Instant, why string, ok bool) {
	if a.Outcome != Granted || len(a.Looks) == 0 {
		return 0, 0, "", false
	}
	last := a.Looks[len(a.Looks)-1]
	to, why = last.Until, "its validity"
	end := func(at clock.Instant, because string) {
		if at != 0 && at < to {
			to, why = at, because
		}
	}
	if a.Denied {
		end(last.At, "the last time it looked before the store denied it")
	}
	end(a.Lost, "it was notified of the loss")
	end(a.Release, "its release began")
	end(a.Killed, "its process was killed")
	end(a.Freed, "an operator released it")
	return a.Answered, to, why, to >= a.Answered
}
