package store

import (
	"errors"
	"testing"
	"time"
)

func TestClasses(t *testing.T) {
	for _, c := range []Class{Efficiency, CrashSafe, Consensus} {
		if got, err := ParseClass(c.String()); got != c || err != nil {
			t.Errorf("%v is read as %v, %v", c, got, err)
		}
	}
	if _, err := ParseClass("safe"); !errors.Is(err, ErrInvalid) {
		t.Errorf("an unknown class: %v", err)
	}
}

func TestOpensIn(t *testing.T) {
	shut := func(d time.Duration) NodeOutcome { return NodeOutcome{Outcome: Quarantined, ExpiresIn: d} }
	free, away := NodeOutcome{Outcome: Granted}, NodeOutcome{Outcome: Unreachable}
	for _, c := range []struct {
		name  string
		nodes []NodeOutcome
		want  time.Duration // 0: it does not
	}{
		{"all are shut: when the second opens", []NodeOutcome{shut(3), shut(1), shut(2)}, 2},
		{"one is free: when the first opens", []NodeOutcome{shut(3), free, shut(2)}, 2},
		{"one is away: when both others are open", []NodeOutcome{shut(3), away, shut(2)}, 3},
		{"two are away", []NodeOutcome{shut(3), away, away}, 0},
		{"nobody is shut", []NodeOutcome{free, away, away}, 0},
		{"a majority is open", []NodeOutcome{free, free, shut(1)}, 0},
	} {
		d, ok := (&QuorumError{Need: 2, Nodes: c.nodes}).OpensIn()
		if d != c.want || ok != (c.want > 0) {
			t.Errorf("%s: %v, %v", c.name, d, ok)
		}
	}
}
