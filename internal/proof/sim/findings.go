package sim

import (
	"fmt"
	"time"
)

// Violation is a promise that was broken.
type Violation struct {
	At   time.Duration
	Rule string // which promise
	Text string // by what
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s: %s", v.At, v.Rule, v.Text) }

// The promises.
const (
	Exclusion = "two valid leases at once"
	Permits   = "more permits held than there are"
	Slots     = "two holders of one slot"
	ToldLate  = "a holder's context did not end before others could have the lock"
	Owner     = "two attempts have one owner"
	Token     = "a fencing token did not increase"
	Stale     = "a holder that believed in its lease was refused for its token"
	Orphan    = "something was left behind"
	Waiting   = "a waiter did not get the lock"
	Idle      = "nobody has a lock that somebody waits for"
	Record    = "the record of a lock contradicts itself"
	Answers   = "a wrong answer"
	Step      = "a step that the proof does not have"
)

// findings are the promises that were found broken, and counts of what was judged.
type findings struct {
	time   *timeline
	hist   *history
	only   string // the rule that is judged; empty: all
	gaveUp bool   // the run has been cut short
	wrongs []Violation
	tally  Tally
}

func (f *findings) failed() bool { return len(f.wrongs) > 0 }

func (f *findings) wrong(rule, format string, args ...any) {
	if f.gaveUp || f.only != "" && f.only != rule {
		return // one is enough, and the end of such a run is no clean one
	}
	v := Violation{At: f.time.now(), Rule: rule, Text: fmt.Sprintf(format, args...)}
	f.wrongs = append(f.wrongs, v)
	f.hist.say("VIOLATION: %s: %s", rule, v.Text)
}
