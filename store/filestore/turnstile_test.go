package filestore

import (
	"errors"
	"slices"
	"testing"
)

// A writer gives way before its first attempt, is in the turnstile from its second one on, and
// leaves it once.
func TestPassage(t *testing.T) {
	var calls []string
	shut := true // another process is in the turnstile
	turn := &turnstile{
		set: func(in bool) error {
			if !in {
				calls = append(calls, "leave")
				return nil
			}
			calls = append(calls, "enter")
			if shut {
				shut = false
				return errors.New("taken")
			}
			return nil
		},
		taken: func() bool { calls = append(calls, "look"); return len(calls) < 3 },
	}
	p := passage{t: turn, polite: true}
	for range 4 {
		p.try(t.Context())
	}
	p.leave()
	if want := []string{"look", "look", "look", "enter", "enter", "leave"}; !slices.Equal(calls, want) {
		t.Errorf("calls %q, want %q", calls, want)
	}

	calls = nil
	p = passage{t: turn, polite: true}
	p.try(t.Context())
	p.leave()
	if len(calls) > 3 || slices.Contains(calls, "leave") {
		t.Errorf("calls %q, want a writer that meets nobody to only look", calls)
	}

	calls = nil
	p = passage{t: turn}
	p.try(t.Context())
	p.leave()
	if len(calls) > 0 {
		t.Errorf("calls %q, want none of a release that finds the file free", calls)
	}

	none := passage{}
	none.try(t.Context())
	none.try(t.Context())
	none.leave()
}

// A process that was stopped in the turnstile holds up others for a moment only.
func TestStoppedInTheTurnstile(t *testing.T) {
	looks := 0
	turn := &turnstile{taken: func() bool { looks++; return true }}
	turn.giveWay(t.Context())
	first := looks
	turn.giveWay(t.Context())
	if first == 0 || looks != first {
		t.Errorf("%d looks before it went past, %d after, want some and none", first, looks-first)
	}
}
