package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/induct"
)

// Only the expected answer, in time and by each solver, is a proof.
func TestAnswers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answer")
	for _, c := range []struct {
		say  string
		good bool
	}{
		{"echo unsat", true},
		{"echo sat", false},
		{"echo unknown", false},
		{"echo '(error \"no such sort\")'; echo unsat", false},
		{"exec sleep 60", false},
		{"exit 1", false},
	} {
		if err := os.WriteFile(file, []byte(c.say), 0o666); err != nil {
			t.Fatal(err)
		}
		limit := 20 * time.Second
		if c.say == "exec sleep 60" {
			limit = 50 * time.Millisecond
		}
		r := report{asked: map[induct.Kind]int{}, right: map[induct.Kind]int{}, took: map[string]time.Duration{}}
		r.add(induct.Question{Kind: induct.Obligation, Words: c.say, Want: "unsat"}, [][]string{{"sh"}}, file, limit)
		if good := r.print([][]string{{"sh"}}); good != c.good {
			t.Errorf("%s: good is %v, want %v", c.say, good, c.good)
		}
	}
}
