package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ARCHITECTURE.md is how a newcomer finds the way, and CONTRIBUTING.md has the recipes: every
// file, package, identifier and target of make that they name in backticks must exist.
func TestArchitectureNamesWhatExists(t *testing.T) {
	architecture, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	contributing, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipes, ok := strings.Cut(string(contributing), "\n## Add a store\n")
	if !ok {
		t.Fatal("CONTRIBUTING.md has no recipes")
	}
	declared, files := declarations(t)
	for _, page := range []struct {
		name, text string
		least      int
	}{
		{"ARCHITECTURE.md", string(architecture), 80},
		{"the recipes of CONTRIBUTING.md", recipes, 50},
	} {
		named := regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(page.text, -1)
		if len(named) < page.least {
			t.Errorf("%d names in %s, want %d at least: does the pattern still match?", len(named), page.name, page.least)
		}
		for _, m := range named {
			if name := m[1]; !strings.Contains(name, "NAME") && !exists(name, declared, files) {
				t.Errorf("%s: %q is neither a file, a package nor an identifier of this module", page.name, name)
			}
		}
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	targets := regexp.MustCompile("`make ([a-z]+)").FindAllSubmatch(slices.Concat(architecture, contributing), -1)
	if len(targets) < 8 {
		t.Errorf("%d targets of make are named, want 8 at least: does the pattern still match?", len(targets))
	}
	for _, m := range targets {
		if !regexp.MustCompile(`(?m)^` + string(m[1]) + `:`).Match(makefile) {
			t.Errorf("the Makefile has no target %q, which a page names", m[1])
		}
	}
}

// ARCHITECTURE.md fits on a screen and names every package.
func TestArchitectureFitsOnAScreen(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	const screen = 80
	if n := strings.Count(string(text), "\n"); n > screen {
		t.Errorf("ARCHITECTURE.md has %d lines, want %d at most: leave out what the code says itself", n, screen)
	}
	packages := 0
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bench"):
			return filepath.SkipDir
		case path == "." || !d.IsDir():
			return nil
		}
		if found, err := filepath.Glob(filepath.Join(path, "*.go")); err != nil || len(found) == 0 {
			return err
		}
		packages++
		path = filepath.ToSlash(path)
		for at := path; at != "."; at = filepath.ToSlash(filepath.Dir(at)) {
			if at == path && strings.Contains(string(text), "`"+at+"`") || strings.Contains(string(text), "`"+at+"/...`") {
				return nil
			}
		}
		t.Errorf("ARCHITECTURE.md does not say what package %s is for", path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if packages < 60 {
		t.Errorf("%d packages found, want 60 at least", packages)
	}
}

// A newcomer finds each answer in one place: the files that answer a question are named
// by their paths, and what is said to be in one is declared there.
func TestArchitectureAnswersInOnePlace(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(text), "## A newcomer's questions\n")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no questions of a newcomer")
	}
	file := regexp.MustCompile("`([\\w/]+\\.(?:go|lua|md))`")
	for _, m := range file.FindAllStringSubmatch(table, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("a question is answered by %s: %v", m[1], err)
		}
	}
	within := regexp.MustCompile("`(\\w+)` in `([\\w/]+\\.(?:go|lua))`").FindAllStringSubmatch(table, -1)
	if len(within) < 10 {
		t.Errorf("%d answers name a declaration and its file, want 10 at least: does the pattern still match?", len(within))
	}
	for _, m := range within {
		source, err := os.ReadFile(m[2])
		if err != nil {
			continue // reported above
		}
		if !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|local function |type )` + m[1] + `\b`).Match(source) {
			t.Errorf("%s is said to be in %s, which does not declare it", m[1], m[2])
		}
	}
}

// exists reports whether a name in a document is a path of the repository, the name
// of one of its files, a command, or an identifier with or without its package
// or type. The targets of make are looked for elsewhere.
func exists(name string, declared, files map[string]bool) bool {
	if strings.HasPrefix(name, "leasehold") || strings.HasPrefix(name, "make ") {
		return true
	}
	if found, err := filepath.Glob(strings.TrimSuffix(name, "/...")); err == nil && len(found) > 0 {
		return true
	}
	if files[name] {
		return true
	}
	last := name[strings.LastIndex(name, ".")+1:]
	return declared[strings.TrimSuffix(last, "()")]
}

// declarations returns the names that the module declares at the top level, as
// methods, as fields or as functions of a Lua script, and the names of all files
// and folders, which are the names of packages.
func declarations(t *testing.T) (declared, files map[string]bool) {
	t.Helper()
	declared, files = map[string]bool{}, map[string]bool{}
	lua := regexp.MustCompile(`(?m)^(?:local )?function (\w+)`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		files[filepath.Base(path)] = true
		if d.IsDir() {
			return nil
		}
		if strings.HasSuffix(path, ".lua") {
			text, err := os.ReadFile(path)
			for _, m := range lua.FindAllSubmatch(text, -1) {
				declared[string(m[1])] = true
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[n.Name.Name] = true
				return false
			case *ast.TypeSpec:
				declared[n.Name.Name] = true
			case *ast.Field:
				for _, id := range n.Names {
					declared[id.Name] = true
				}
			case *ast.ValueSpec:
				for _, id := range n.Names {
					declared[id.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared, files
}
