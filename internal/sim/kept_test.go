package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Scripts that once found something, or that are hard in a way the seeds may
// miss. They run always.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/kept/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata/kept: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			report(t, s, Run(t, s, Shipped(), false))
		})
	}
}

func report(t *testing.T, s Script, r Result) {
	for _, v := range r.Violations {
		t.Error(v)
	}
}
