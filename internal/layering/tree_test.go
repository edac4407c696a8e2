package layering

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// tree is the source of a workspace. It is read file by file, for all systems and build tags
// at once, so that imports on other systems count too.
type tree struct {
	modules []module // the first is the root
	fset    *token.FileSet
	files   []file
}

type file struct {
	pkg    string // directory relative to the root module, "." for its own
	path   string // relative to the root module
	test   bool
	syntax *ast.File
}

// imports returns the paths that the file imports.
func (f file) imports() []string {
	var paths []string
	for _, spec := range f.syntax.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			panic(err) // the parser has accepted it
		}
		paths = append(paths, p)
	}
	return paths
}

// packages returns the directories with Go files, sorted.
func (t tree) packages() []string {
	var all []string
	for _, f := range t.files {
		all = append(all, f.pkg)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// own returns the package's path relative to the root module, if it is one of ours.
func (t tree) own(importPath string) (string, bool) {
	root := t.modules[0].path
	if importPath == root {
		return ".", true
	}
	return strings.CutPrefix(importPath, root+"/")
}

// foreign reports whether an import is neither ours nor of the standard library.
func (t tree) foreign(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	_, own := t.own(importPath)
	return !own && strings.Contains(first, ".")
}

// readTree reads the workspace in fsys, without modules that go.work does not list.
func readTree(fsys fs.FS) (tree, error) {
	t := tree{fset: token.NewFileSet()}
	var err error
	if t.modules, err = readModules(fsys); err != nil {
		return t, err
	}
	err = fs.WalkDir(fsys, ".", func(at string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if at != "." && (ignored(d.Name()) || isModule(fsys, at) && t.of(at).dir != at) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(at, ".go") || ignored(d.Name()):
			return nil
		}
		return t.add(fsys, at)
	})
	return t, err
}

func (t *tree) add(fsys fs.FS, rel string) error {
	source, err := fs.ReadFile(fsys, rel)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(t.fset, rel, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	pkg := "."
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		pkg = rel[:i]
	}
	t.files = append(t.files, file{
		pkg:    pkg,
		path:   rel,
		test:   strings.HasSuffix(rel, "_test.go"),
		syntax: syntax,
	})
	return nil
}

// ignored reports whether the Go command ignores files and directories of that name.
func ignored(name string) bool {
	return name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func isModule(fsys fs.FS, dir string) bool {
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return !errors.Is(err, fs.ErrNotExist)
}
