//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each command that the help lists has a page, with its flags, and the cask of Homebrew,
// which has to name them one by one, has all of them.
func TestMan(t *testing.T) {
	dir := t.TempDir()
	s := newSite(t).plain()
	s.run(0, "man", dir)
	for page, flags := range map[string][]string{
		"leasehold":                 {"store", "store-file", "quiet"},
		"leasehold-run":             {"try", "min-hold", "conflict-exit-code", "store"},
		"leasehold-lab-torture":     {"kinds", "store"},
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
	config, err := os.ReadFile("../../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var named, written []string
	for _, m := range regexp.MustCompile(`(?m)^ +- man/(.+)\.gz$`).FindAllStringSubmatch(string(config), -1) {
		named = append(named, m[1])
	}
	pages, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		written = append(written, p.Name())
	}
	slices.Sort(named)
	if !slices.Equal(named, written) {
		t.Errorf("the cask in .goreleaser.yaml has the pages %q, want %q", named, written)
	}
	for _, args := range [][]string{{"man"}, {"man", dir, dir}, {"man", filepath.Join(dir, "none")}} {
		s.run(125, args...)
	}
}
