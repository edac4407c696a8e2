package store

import (
	"errors"
	"testing"
	"time"
)

func TestClasses(t *testing.T) {
	for _, c := range []Class{Efficiency, CrashSafe, Consensus} {
		if got, err := ParseClass(c.String()); got != c || err != nil {
			t.Errorf("ParseClass(%q) = %v, %v, want %[1]v", c.String(), got, err)
		}
	}
	if _, err := ParseClass("safe"); !errors.Is(err, ErrInvalid) {
		t.Errorf("ParseClass of an unknown class: %v, want ErrInvalid", err)
	}
}

func TestOpensIn(t *testing.T) {
	quarantined := func(d time.Duration) NodeOutcome { return NodeOutcome{Outcome: Quarantined, ExpiresIn: d} }
	granted, unreachable := NodeOutcome{Outcome: Granted}, NodeOutcome{Outcome: Unreachable}
	for _, c := range []struct {
		name  string
		nodes []NodeOutcome
		want  time.Duration // 0: the end of a quarantine does not help
	}{
		{"all are quarantined: when the second opens", []NodeOutcome{quarantined(3), quarantined(1), quarantined(2)}, 2},
		{"one granted: when the first opens", []NodeOutcome{quarantined(3), granted, quarantined(2)}, 2},
		{"one is unreachable: when both others have opened", []NodeOutcome{quarantined(3), unreachable, quarantined(2)}, 3},
		{"two are unreachable", []NodeOutcome{quarantined(3), unreachable, unreachable}, 0},
		{"none is quarantined", []NodeOutcome{granted, unreachable, unreachable}, 0},
		{"a majority granted", []NodeOutcome{granted, granted, quarantined(1)}, 0},
	} {
		d, ok := (&QuorumError{Need: 2, Nodes: c.nodes}).OpensIn()
		if d != c.want || ok != (c.want > 0) {
			t.Errorf("%s: OpensIn() = %v, %v, want %v", c.name, d, ok, c.want)
		}
	}
}
