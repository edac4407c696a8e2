//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each command that the help lists has a page, with its flags.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t)
	s.run(0, "man", dir)
	for page, flags := range map[string][]string{
		"leasehold":                 {"store", "store-file", "quiet"},
		"leasehold-run":             {"try", "min-hold", "conflict-exit-code", "store"},
		"leasehold-lab-run":         {"json", "store"},
		"leasehold-completion-bash": {"no-descriptions"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, page+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, f := range flags {
			if !strings.Contains(string(text), `\fB\-\-`+strings.ReplaceAll(f, "-", `\-`)+`\fR`) {
				t.Errorf("%s lacks %q", page, `\fB\-\-`+strings.ReplaceAll(f, "-", `\-`)+`\fR`)
			}
		}
	}
	for _, args := range [][]string{{"man"}, {"man", dir, dir}, {"man", filepath.Join(dir, "none")}} {
		s.run(125, args...)
	}
}
