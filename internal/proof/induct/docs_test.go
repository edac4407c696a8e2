package induct

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// docs/verification.md explains each clause of the proof, and says how many questions
// there are.
func TestClausesAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../../docs/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Spec{Redlock(), RedlockFloor()} {
		for _, c := range s.Clauses {
			row, inText := "| "+c.Name+" |", "("+c.Name+")"
			if !strings.Contains(string(text), row) && !strings.Contains(string(text), inText) {
				t.Errorf("docs/verification.md does not explain %s of %s: %s", c.Name, s.Name, c.Words)
			}
		}
	}
	counts := map[Kind]int{}
	for _, q := range Questions() {
		counts[q.Kind]++
	}
	line := fmt.Sprintf("%d obligations, %[1]d proved; %d mutants, %[2]d refuted", counts[Obligation], counts[Mutation])
	if !strings.Contains(string(text), line) {
		t.Errorf("docs/verification.md does not say %q", line)
	}
}
