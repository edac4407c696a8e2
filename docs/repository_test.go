package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// tests returns the names of all tests and fuzz targets, with their folders.
func tests(t *testing.T) map[string][]string {
	t.Helper()
	exists := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`).FindAllSubmatch(text, -1) {
			exists[string(m[1])] = append(exists[string(m[1])], "./"+filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return exists
}

// The tests that the Makefile names must exist. Otherwise a test that is renamed would
// silently drop out of "make quick" or come into it, or run beside others although it must
// run alone.
func TestMakefileNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	exists := tests(t)
	var named []string
	for _, m := range regexp.MustCompile(`(?m)^(?:ALONE|CHANGED|QUICKREDIS|QUICKSKIP) += (.*)$`).FindAllSubmatch(text, -1) {
		pattern := strings.NewReplacer("^", "", "$", "").Replace(string(m[1]))
		before, alternatives, ok := strings.Cut(pattern, "(")
		if !ok {
			before, alternatives = "", pattern
		}
		alternatives, after, _ := strings.Cut(alternatives, ")")
		for a := range strings.SplitSeq(alternatives, "|") {
			named = append(named, before+a+after)
		}
	}
	if len(named) < 5 {
		t.Errorf("%d tests named in the Makefile, want 5 at least: does the pattern still match?", len(named))
	}
	for _, name := range named {
		matches := regexp.MustCompile("^" + name + "$").MatchString
		if !slices.ContainsFunc(slices.Collect(maps.Keys(exists)), matches) {
			t.Errorf("the Makefile names %s, but there is no such test", name)
		}
	}
}

// Tests that "make test" leaves out of the run of all packages are in one of those without the
// race detector.
func TestMakefileRunsAllTests(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	setting := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + ` += (.*)$`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("the Makefile does not set %s", name)
		}
		return strings.ReplaceAll(string(m[1]), "$$", "$")
	}
	alone, comparing := regexp.MustCompile(setting("ALONE")), strings.Fields(setting("COMPARING")+" "+setting("SERVED"))
	for name, folders := range tests(t) {
		for _, folder := range folders {
			if alone.MatchString(name) && !slices.Contains(comparing, folder) {
				t.Errorf("%s in %s is in no run of \"make test\": its name matches ALONE, and neither COMPARING nor SERVED has the folder", name, folder)
			}
		}
	}
}

// Only what is shown to people, or compared between processes, may use the time of day.
// The client decides by a clock that counts elapsed time.
func TestWallClockIsNotRead(t *testing.T) {
	allowed := map[string]string{
		"Describe":          "tells others since when the lock is held",
		"nowForPeople":      "tells others when a lease was broken",
		"present":           "finds the tick, which is a time of day",
		"leaders":           "tells since when the leader leads",
		"Deadline":          "tells the holder the end of validity as a time",
		"newPlaceLocked":    "ranks a place among those of other processes",
		"reservationWanted": "ranks the next place in the same way",
	}
	var files []string
	for _, folder := range []string{".", "internal/holds", "internal/waits"} {
		found, err := filepath.Glob(folder + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(f, func(n ast.Node) bool {
				s, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && (s.Sel.Name == "Now" || s.Sel.Name == "Since" || s.Sel.Name == "Until") && allowed[f.Name.Name] == "" {
					t.Errorf("%v: %s reads the time of day", set.Position(s.Pos()), f.Name.Name)
				}
				return true
			})
		}
	}
}
