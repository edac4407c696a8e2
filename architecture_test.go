package leasehold_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ARCHITECTURE.md is how a newcomer finds the way, so every file, package and
// identifier that it names in backticks must exist.
func TestArchitectureNamesWhatExists(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	declared, files := declarations(t)
	named := regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 40 {
		t.Errorf("only %d names in ARCHITECTURE.md: is it read right?", len(named))
	}
	for _, m := range named {
		if name := m[1]; !exists(name, declared, files) {
			t.Errorf("ARCHITECTURE.md names %q, which is neither a file, a package nor an identifier of this module", name)
		}
	}
}

// exists says whether a name in a document is a path of the repository, the name
// of one of its files, a command, or an identifier with or without its package
// or type.
func exists(name string, declared, files map[string]bool) bool {
	if strings.HasPrefix(name, "make ") || strings.HasPrefix(name, "leasehold") {
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
