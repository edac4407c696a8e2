package sim

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Scripts that once found a violation, or that are hard in a way that the seeds may miss, run
// every time.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/kept/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata/kept: %v", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			s := read(t, f)
			if r := Run(t, s, Shipped(), false); len(r.Violations) > 0 {
				report(t, fmt.Sprintf("-script=%s", f), s, r)
			}
		})
	}
}
