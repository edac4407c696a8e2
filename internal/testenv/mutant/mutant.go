// Package mutant runs tests of a package on a copy of it with one edit, to show that they
// notice a mechanism that is missing. The product has no switches for that: the edit is
// laid over the file with go test -overlay.
package mutant

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mutant is one edit of a file in the folder of the test.
type Mutant struct {
	Name     string // what the edit takes away
	File     string
	Old, New string // Old has to be in the file once
	Run      string // the tests that have to fail, as in go test -run
}

// Check runs the tests of each mutant as a subtest, which passes if they fail.
func Check(t *testing.T, all []Mutant) {
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			path, err := filepath.Abs(m.File)
			if err != nil {
				t.Fatal(err)
			}
			source, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(source), m.Old); n != 1 {
				t.Fatalf("%s has %d times %q, want once", m.File, n, m.Old)
			}
			dir := t.TempDir()
			edited, overlay := filepath.Join(dir, "edited.go"), filepath.Join(dir, "overlay.json")
			if err := os.WriteFile(edited, []byte(strings.Replace(string(source), m.Old, m.New, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: edited}})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(overlay, replace, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command("go", "test", "-vet=off", "-count=1", "-failfast", "-timeout=5m", "-overlay", overlay, "-run", m.Run, ".").CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("the tests %s pass without: %s", m.Run, m.Name)
			case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:"):
				t.Errorf("the tests did not run: %v\n%s", err, out)
			}
		})
	}
}
