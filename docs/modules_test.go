package docs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A program outside the workspace that uses locks on Redis builds from its own
// module and this one. It needs no go.sum, because it fetches nothing else.
func TestModulesOfAProgramThatUsesRedis(t *testing.T) {
	t.Parallel() // it mostly waits
	const us = "github.com/leasehold-dev/leasehold"
	tree, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": fmt.Sprintf("module example.org/user\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %q\n", us, tree),
		"main.go": fmt.Sprintf(`package main

import (
	_ %q
	_ %q
)

func main() {}
`, us, us+"/store/redisstore"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golang := func(args ...string) []string {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir = dir
		// Everything it needs was fetched to build this test.
		c.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return strings.Fields(string(out))
	}
	golang("build", "-o", "program", ".")

	var graph []string
	for _, m := range golang("mod", "graph") {
		// The others, go and toolchain, are versions of the language and its tools.
		if path, _, _ := strings.Cut(m, "@"); strings.Contains(path, ".") {
			graph = append(graph, path)
		}
	}
	slices.Sort(graph)
	// Only our tests need these modules.
	tests := []string{"github.com/yuin/gopher-lua", "go.uber.org/goleak", "pgregory.net/rapid"}
	if graph = slices.Compact(graph); !slices.Equal(graph, append([]string{"example.org/user", us}, tests...)) {
		t.Errorf("the module graph of the program has %q, want only its own module, %s and %q", graph, us, tests)
	}

	built := golang("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	slices.Sort(built)
	if built = slices.Compact(built); !slices.Equal(built, []string{"example.org/user", us}) {
		t.Errorf("the program is built from the modules %q, want only its own and %s", built, us)
	}

	if sums, err := os.ReadFile(filepath.Join(dir, "go.sum")); !os.IsNotExist(err) {
		t.Errorf("the program needs a go.sum (%v):\n%s", err, sums)
	}
}
