package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/explore"
)

// The time left is computed from the planned states that are left, at the pace so far.
func TestMeter(t *testing.T) {
	rows := explore.Rows()[:3]
	for _, r := range rows {
		if sizeOf(r) == 0 {
			t.Fatalf("sizes.txt has no size of %s", r.Name)
		}
	}
	m := newMeter(rows)
	m.planned = sizeOf(rows[0]) + 3000
	m.finish(rows[0], 1000)
	if m.done != 1 || m.planned != 4000 {
		t.Errorf("%d rows done, %d states planned, want 1 and 4000", m.done, m.planned)
	}
	got := m.line(rows[1], 1000, 7, m.began.Add(2*time.Second))
	for _, want := range []string{"1 of 3 rows", "1000 states a second", "about 2s left", rows[1].Name + ": 1000 states, depth 7"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q does not say %q", got, want)
		}
	}
	if m.due(m.began.Add(time.Second)) || !m.due(m.began.Add(6*time.Second)) || m.due(m.began.Add(7*time.Second)) {
		t.Error("a line is due at other times than every five seconds")
	}
}

// Every row has a size, by which .ci/run selects the small ones.
func TestSizes(t *testing.T) {
	known := map[string]bool{}
	for _, r := range explore.Rows() {
		known[r.Name] = true
		if sizeOf(r) == 0 {
			t.Errorf("sizes.txt has no size of %s", r.Name)
		}
	}
	for line := range strings.Lines(sizes) {
		if name, _, _ := strings.Cut(line, " "); !known[name] {
			t.Errorf("sizes.txt has a size of %s, and there is no such row", name)
		}
	}
}

// docs/verification.md states the number of runs and of their states.
func TestVerificationCountsTheRuns(t *testing.T) {
	const small = 600_000 // as .ci/run has it
	text, err := os.ReadFile("../../../../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	states, few, waiting := 0, 0, 0
	for _, r := range explore.Rows() {
		states += sizeOf(r)
		if sizeOf(r) < small {
			few++
		}
		if strings.HasPrefix(r.Name, "W") {
			waiting++
		}
	}
	flat := regexp.MustCompile(`\s+`).ReplaceAllString(string(text), " ")
	for _, want := range []string{
		fmt.Sprintf("The explorer has %d runs", len(explore.Rows())),
		fmt.Sprintf("Together they have %d million states; `.ci/run` runs the %d that have fewer than 600,000 states each", (states+500_000)/1_000_000, few),
		fmt.Sprintf("%d of the explorer's runs are about waiting", waiting),
	} {
		if !strings.Contains(flat, want) {
			t.Errorf("docs/verification.md does not say %q", want)
		}
	}
}
