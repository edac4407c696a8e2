package stories

import (
	"fmt"
	"sync"
	"time"
)

// Event is one line of a story.
type Event struct {
	Story string `json:"story"`
	// Part is Weak or Ours.
	Part string `json:"part"`
	// At is how long after the part began, in milliseconds.
	At int64 `json:"at_ms"`
	// Actor is a client, a node, the network or the resource; empty for a comment.
	Actor string `json:"actor,omitempty"`
	// Kind is one of the constants below.
	Kind string `json:"kind"`
	What string `json:"what"`
	// Outcome is set at the end of a part.
	Outcome Outcome `json:"outcome,omitempty"`
}

// The parts.
const (
	Weak = "weak"
	Ours = "ours"
)

// The kinds of events.
const (
	Begin = "begin" // a part begins: what its design is
	Step  = "step"  // somebody does something
	Fault = "fault" // something happens to somebody
	Note  = "note"  // a comment
	End   = "end"   // a part ends: how
)

// timeline is one part of a story as it happens. It is safe for concurrent use.
type timeline struct {
	story, part string
	start       time.Time
	tell        func(Event)
	mu          sync.Mutex // held while told, so that lines are in order of time
}

func newTimeline(story, part string, tell func(Event)) *timeline {
	return &timeline{story: story, part: part, start: time.Now(), tell: tell}
}

func (t *timeline) add(kind, actor, format string, args ...any) {
	t.put(Event{Kind: kind, Actor: actor, What: fmt.Sprintf(format, args...)})
}

func (t *timeline) put(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.Story, e.Part, e.At = t.story, t.part, time.Since(t.start).Milliseconds()
	t.tell(e)
}
