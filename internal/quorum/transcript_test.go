package quorum

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/transcript"
)

// Each file in testdata is a story: the events of an attempt and, indented below each event,
// the messages that it sends and its state. Text after # is for the reader. To add a story,
// write its events and run
//
//	go test ./internal/quorum -run TestTranscripts -update
//
// and read the result.
func TestTranscripts(t *testing.T) {
	transcript.Check(t, func() transcript.Teller { return &teller{} })
}

// teller tells the story of one attempt after the other.
type teller struct{ a *Attempt }

func (t *teller) Begin(line string) bool {
	a := parseBegin(line)
	if a != nil {
		t.a = a
	}
	return a != nil
}

func (t *teller) Tell(line string) (sends []string, state string, err error) {
	ms, e, err := parseEvent(line)
	if err != nil {
		return nil, "", err
	}
	for _, s := range t.a.Step(e, at(ms), nil) {
		sends = append(sends, sendText(s))
	}
	return sends, stateText(t.a, at(ms)), nil
}

var beginning = regexp.MustCompile(`^at (\d+)ms an attempt begins on (\d+) nodes(, waits)?(, queues only)?$`)

// parseBegin returns the attempt that a line begins, or nil. Its TTL is 3 s, and a node has
// 50 ms to answer.
func parseBegin(line string) *Attempt {
	m := beginning.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	ms, _ := strconv.Atoi(m[1])
	nodes, _ := strconv.Atoi(m[2])
	cfg := Config{Nodes: nodes, NodeTimeout: 50 * time.Millisecond}
	var a Attempt
	if m[3] != "" {
		a = NewWait(cfg, 3*time.Second, at(ms), m[4] != "")
	} else {
		a = NewAttempt(cfg, 3*time.Second, at(ms))
	}
	return &a
}

// phrases are the events that a story can tell.
var phrases = []struct {
	pattern *regexp.Regexp
	event   func(m []string) Event
}{
	{regexp.MustCompile(`^node (\d+) grants token (\d+)$`), func(m []string) Event {
		return Event{Kind: Yes, Op: Acquire, Node: number(m[1]), Token: uint64(number(m[2]))}
	}},
	{regexp.MustCompile(`^node (\d+) grants slots? ([\d,]+) with token (\d+)$`), func(m []string) Event {
		return Event{Kind: Yes, Op: Acquire, Node: number(m[1]), Slots: m[2], Token: uint64(number(m[3]))}
	}},
	{regexp.MustCompile(`^node (\d+) pushes a grant of slots? ([\d,]+) with token (\d+) for the request of (\d+)ms$`), func(m []string) Event {
		return Event{Kind: PushGranted, Op: Acquire, Node: number(m[1]), Slots: m[2], Token: uint64(number(m[3])), From: at(number(m[4]))}
	}},
	{regexp.MustCompile(`^node (\d+) confirms token (\d+)$`), func(m []string) Event {
		return Event{Kind: Yes, Op: Confirm, Node: number(m[1]), Token: uint64(number(m[2]))}
	}},
	{regexp.MustCompile(`^node (\d+) cannot confirm, the lock is no longer ours there$`), func(m []string) Event {
		return Event{Kind: No, Op: Confirm, Node: number(m[1])}
	}},
	{regexp.MustCompile(`^node (\d+) refuses, (\w+) has the lock for (\d+)ms( and is senior)?$`), func(m []string) Event {
		lasts := time.Duration(number(m[3])) * time.Millisecond
		return Event{Kind: No, Op: Acquire, Node: number(m[1]), Holder: m[2], ExpiresIn: lasts, RetryAfter: lasts, Senior: m[4] != ""}
	}},
	{regexp.MustCompile(`^node (\d+) queues us, the lock is free$`), func(m []string) Event {
		return Event{Kind: Absent, Op: Acquire, Node: number(m[1]), RetryAfter: time.Hour}
	}},
	{regexp.MustCompile(`^node (\d+) queues us, the lock is free, and a grant would not count for (\d+)ms$`), func(m []string) Event {
		return Event{Kind: Absent, Op: Acquire, Node: number(m[1]), Uncounted: true, RetryAfter: time.Duration(number(m[2])) * time.Millisecond}
	}},
	{regexp.MustCompile(`^node (\d+) grants, which does not count$`), func(m []string) Event {
		return Event{Kind: Discounted, Op: Acquire, Node: number(m[1])}
	}},
	{regexp.MustCompile(`^node (\d+) cannot be reached$`), func(m []string) Event {
		return Event{Kind: Unsent, Op: Acquire, Node: number(m[1]), RetryAfter: 100 * time.Millisecond}
	}},
	{regexp.MustCompile(`^node (\d+) breaks the connection$`), func(m []string) Event {
		return Event{Kind: Unknown, Op: Acquire, Node: number(m[1]), RetryAfter: 100 * time.Millisecond}
	}},
	{regexp.MustCompile(`^node (\d+) pushes a grant of token (\d+) for the request of (\d+)ms$`), func(m []string) Event {
		return Event{Kind: PushGranted, Op: Acquire, Node: number(m[1]), Token: uint64(number(m[2])), From: at(number(m[3]))}
	}},
	{regexp.MustCompile(`^node (\d+) pushes that the lock is free$`), func(m []string) Event {
		return Event{Kind: PushFree, Node: number(m[1])}
	}},
	{regexp.MustCompile(`^time passes$`), func([]string) Event { return Event{Kind: Tick} }},
	{regexp.MustCompile(`^the caller gives up$`), func([]string) Event { return Event{Kind: Cancel} }},
}

var timed = regexp.MustCompile(`^at (\d+)ms (.*)$`)

func parseEvent(line string) (ms int, e Event, err error) {
	m := timed.FindStringSubmatch(line)
	if m == nil {
		return 0, e, fmt.Errorf("no time in %q", line)
	}
	for _, p := range phrases {
		if found := p.pattern.FindStringSubmatch(m[2]); found != nil {
			return number(m[1]), p.event(found), nil
		}
	}
	return 0, e, fmt.Errorf("unknown event %q", m[2])
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func sendText(s Send) string {
	text := fmt.Sprintf("%s node %d", s.Op, s.Node)
	if s.Op == Confirm {
		text = fmt.Sprintf("ask node %d to confirm token %d", s.Node, s.Token)
	}
	if s.Slots != "" {
		text += " with slots " + s.Slots
	}
	for _, f := range []struct {
		set  bool
		word string
	}{
		{s.Wish, "or others"}, {s.Again, "again"}, {s.QueueOnly, "queue only"}, {s.Tombstone && !s.AlwaysTombstone, "leave a tombstone if nothing is there"},
		{s.AlwaysTombstone, "leave a tombstone in any case"}, {s.GivesWay && !s.ToSenior, "keep it free"}, {s.ToSenior, "hand it to the senior"},
	} {
		if f.set {
			text += ", " + f.word
		}
	}
	return text
}

var (
	phaseNames   = [...]string{Asked: "asked", Held: "granted", Refused: "refused", Missing: "not reached", Doubtful: "may have granted", Relinquish: "told to release"}
	verdictNames = [...]string{Open: "open", Won: "won", Lost: "lost"}
)

// stateText describes the attempt and each node in it.
func stateText(a *Attempt, now clock.Instant) string {
	text := verdictNames[a.Verdict()]
	switch {
	case a.Verdict() == Won:
		if a.Slots() != "" {
			text += " slots " + a.Slots()
		}
		text += fmt.Sprintf(" with token %d, valid from %v", a.Token(), a.From().Sub(waitStart))
	case a.HandedOver():
		text += ", handed over"
	case a.GaveWay():
		text += ", gave way"
	}
	if s := a.Suggests(); a.Verdict() == Lost && s != "" {
		text += ", and suggests slots " + s
	}
	for i := range a.Nodes {
		n := &a.nodes[i]
		text += fmt.Sprintf(" | %d %s", i, phaseNames[n.phase])
		switch {
		case n.phase == Held:
			text += fmt.Sprintf(" %d", n.token)
			if n.slots != "" {
				text += " slots " + n.slots
			}
			if !a.holds(n, now) {
				text += " (expired)"
			}
		case n.phase == Refused && a.places.nodes[i].holder != "":
			text += " for " + a.places.nodes[i].holder
		}
		if n.late {
			text += " (late)"
		}
	}
	return text
}
