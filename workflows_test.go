package leasehold_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// found returns what the first group of pattern matches in the file.
func found(t *testing.T, file, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("%s has nothing that matches %s", file, pattern)
	}
	slices.Sort(all)
	return all
}

// The workflow "test" runs the phases of .ci/run, each in a job of its own.
func TestWorkflowRunsThePhasesOfCI(t *testing.T) {
	phases := found(t, ".ci/run", `[a-z]+: make ([^;'\n]+)`)
	if jobs := found(t, ".github/workflows/test.yml", `\n {10}- (.+)`); !slices.Equal(jobs, phases) {
		t.Errorf("the workflow runs %q, and .ci/run %q", jobs, phases)
	}
}

// The workflows call targets of the Makefile, with the newest patch of the Go version
// that go.work names.
func TestWorkflowsFitTheTree(t *testing.T) {
	targets := found(t, "Makefile", `(?m)^([a-z-]+):.*## `)
	release := found(t, "go.work", `(?m)^go (\d+\.\d+)`)[0] + ".x"
	files, err := filepath.Glob(".github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no workflows", err)
	}
	for _, file := range files {
		for _, target := range found(t, file, `run: make (\S+)`) {
			if target != "${{" && !slices.Contains(targets, target) {
				t.Errorf("%s: there is no target %q", file, target)
			}
		}
		for _, v := range found(t, file, `go-version: "(.*)"`) {
			if v != release {
				t.Errorf("%s has Go %s, want %s", file, v, release)
			}
		}
	}
}
