package waitq

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/transcript"
)

// Each file in testdata is a story: the events of a queue and, indented below each event, the
// actions that it wants of its driver and its state. Text after # is for the reader. To add a
// story, write its events and run
//
//	go test ./internal/waitq -run TestTranscripts -update
//
// and read the result.
func TestTranscripts(t *testing.T) {
	transcript.Check(t, func() transcript.Teller { return &teller{} })
}

// teller replays a story.
type teller struct {
	q       Queue[string]
	waiters map[string]*Waiter[string]
}

// epoch is when every story begins, and midnight is the time of day then.
const (
	epoch    = clock.Instant(time.Hour)
	midnight = 1e15
)

func (t *teller) Tell(line string) (done []string, state string, err error) {
	e, ms, err := t.parse(line)
	if err != nil {
		return nil, "", err
	}
	now := epoch.Add(time.Duration(ms) * time.Millisecond)
	var actions []Action[string]
	if e.Kind == Join {
		actions = t.q.Step(Event[string]{Kind: Arrive}, now, nil)
	}
	if len(actions) == 0 {
		actions = t.q.Step(e, now, nil)
	}
	for _, a := range actions {
		done = append(done, actionText(a))
	}
	return done, t.state(), nil
}

var beginning = regexp.MustCompile(`^a queue(, for a lock that others want)?$`)

// Begin makes the queue that a line begins, if it begins one. Its TTL is 3 s.
func (t *teller) Begin(line string) bool {
	m := beginning.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	*t = teller{q: New[string](3*time.Second, &Contention{busy: m[1] != ""}), waiters: map[string]*Waiter[string]{}}
	return true
}

var reasons = map[string]Reason{"is busy": Busy, "is closed for a while": Closed, "gives no answer": NoAnswer}

// phrases are the events that a story can tell.
var phrases = []struct {
	pattern *regexp.Regexp
	event   func(m []string) Event[string]
}{
	{regexp.MustCompile(`^(\w+) wants the lock( and listens)?$`), func(m []string) Event[string] {
		return Event[string]{Kind: Join, Waiter: &Waiter[string]{Of: m[1], Listens: m[2] != ""}}
	}},
	{regexp.MustCompile(`^(\w+)'s attempt is granted$`), func([]string) Event[string] { return Event[string]{Kind: TryGranted} }},
	{regexp.MustCompile(`^(\w+)'s attempt is refused, the store (is busy|is closed for a while|gives no answer)$`), func(m []string) Event[string] {
		return Event[string]{Kind: TryRefused, Why: reasons[m[2]]}
	}},
	{regexp.MustCompile(`^(\w+)'s attempt fails$`), func([]string) Event[string] { return Event[string]{Kind: TryFailed} }},
	{regexp.MustCompile(`^(\w+|a goroutine) enters the store's queue$`), func([]string) Event[string] { return Event[string]{Kind: Enter} }},
	{regexp.MustCompile(`^the store (is busy|is closed for a while|gives no answer)$`), func(m []string) Event[string] {
		return Event[string]{Kind: NewReason, Why: reasons[m[1]], Pushed: true}
	}},
	{regexp.MustCompile(`^the store grants the lock$`), func([]string) Event[string] { return Event[string]{Kind: Granted} }},
	{regexp.MustCompile(`^the store refuses, and waiting cannot help$`), func([]string) Event[string] { return Event[string]{Kind: Refused} }},
	{regexp.MustCompile(`^the place is over$`), func([]string) Event[string] { return Event[string]{Kind: PlaceOver} }},
	{regexp.MustCompile(`^(\w+)'s context ends$`), func([]string) Event[string] { return Event[string]{Kind: Ended} }},
	{regexp.MustCompile(`^(\w+) leaves$`), func([]string) Event[string] { return Event[string]{Kind: Leave} }},
	{regexp.MustCompile(`^the release takes the next place$`), func([]string) Event[string] { return Event[string]{Kind: Reserve} }},
	{regexp.MustCompile(`^the reservation gets older$`), func([]string) Event[string] { return Event[string]{Kind: Lapse} }},
}

var timed = regexp.MustCompile(`^at (\d+)ms (.*)$`)

func (t *teller) parse(line string) (e Event[string], ms int, err error) {
	m := timed.FindStringSubmatch(line)
	if m == nil {
		return e, 0, fmt.Errorf("no time in %q", line)
	}
	for _, p := range phrases {
		found := p.pattern.FindStringSubmatch(m[2])
		if found == nil {
			continue
		}
		e, ms := p.event(found), number(m[1])
		e.Rank = midnight + uint64(ms)*1000
		switch e.Kind {
		case Join:
			t.waiters[found[1]] = e.Waiter
		case TryRefused, Ended, Leave:
			if e.Waiter = t.waiters[found[1]]; e.Waiter == nil {
				return e, 0, fmt.Errorf("no waiter is called %q", found[1])
			}
		}
		return e, ms, nil
	}
	return e, 0, fmt.Errorf("unknown event %q", m[2])
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func actionText(a Action[string]) string {
	switch a.Kind {
	case Try:
		return "make one attempt"
	case EnterYourself:
		return a.Waiter.Of + " asks for the queue"
	case Start:
		return "start a goroutine that asks for the queue"
	case Wait:
		if a.Reserved {
			return "wait at the reserved place"
		}
		return "wait in the store's queue"
	case GiveUp:
		if a.Reserved {
			return "give up the reserved place"
		}
		return "give up the place"
	case Tell:
		return "tell " + a.Waiter.Of
	case TellListeners:
		return "tell those that listen"
	case TellAll:
		return "tell all"
	case Refuse:
		return "refuse " + a.Waiter.Of
	case Give:
		return a.Waiter.Of + " has the lease"
	case Discard:
		return "release what was granted"
	}
	return "unknown"
}

// state describes the queue.
func (t *teller) state() string {
	q := &t.q
	text := q.Phase().String()
	if q.Phase() == Waiting && q.Rank() != 0 {
		text += fmt.Sprintf(" since %dms", (q.Rank()-midnight)/1000)
	}
	separator := " | "
	for w := range q.Waiters() {
		text += separator + w.Of
		if w.ended {
			text += " (about to leave)"
		}
		separator = ", "
	}
	if q.reservation.exists {
		text += " | a place is reserved"
	}
	if q.trouble != 0 {
		text += " | no answer since " + clock.Instant(q.trouble).Sub(epoch).String()
	}
	return text
}
