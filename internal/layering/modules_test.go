package layering

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// module is one of the modules of the workspace.
type module struct {
	dir      string   // relative to the root, "." for the root
	path     string   // the beginning of its import paths
	requires []string // the paths of the modules that its go.mod names
}

// readModules reads the root module and those that its go.work lists.
func readModules(fsys fs.FS) ([]module, error) {
	dirs := []string{"."}
	work, err := fs.ReadFile(fsys, "go.work")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, dir := range directives(work, "use") {
		if dir = path.Clean(dir); dir != "." {
			dirs = append(dirs, dir)
		}
	}
	var all []module
	for _, dir := range dirs {
		text, err := fs.ReadFile(fsys, path.Join(dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		paths := directives(text, "module")
		if len(paths) != 1 {
			return nil, fmt.Errorf("no module line in %s/go.mod", dir)
		}
		all = append(all, module{dir: dir, path: paths[0], requires: directives(text, "require")})
	}
	for _, m := range all[1:] {
		if m.path != all[0].path+"/"+m.dir {
			return nil, fmt.Errorf("%s/go.mod: the module is called %s, not after its folder", m.dir, m.path)
		}
	}
	return all, nil
}

// directives returns the first argument of each directive of that name, alone or
// in a block, of a go.mod or go.work file.
func directives(text []byte, name string) []string {
	var found []string
	block := ""
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		if block != "" {
			words = append([]string{block}, words...)
		}
		switch {
		case len(words) < 2:
		case words[1] == "(":
			block = words[0]
		case words[1] == ")":
			block = ""
		case words[0] == name:
			found = append(found, words[1])
		}
	}
	return found
}

// of returns the module that has the package: the one deepest in the tree.
func (t tree) of(pkg string) module {
	owner := t.modules[0]
	for _, m := range t.modules[1:] {
		if within(pkg, m.dir) && (owner.dir == "." || len(m.dir) > len(owner.dir)) {
			owner = m
		}
	}
	return owner
}

// checkModule reports a file, also of a test, that imports a package of a module that the
// go.mod of its own module does not name. Within the workspace the Go command allows that.
func checkModule(t tree, f file, imported string) string {
	from := t.of(f.pkg)
	named := func(m string) bool { return within(imported, m) }
	if to, own := t.own(imported); own {
		target := t.of(to)
		if target.path == from.path || slices.Contains(from.requires, target.path) {
			return ""
		}
	} else if !t.foreign(imported) || slices.ContainsFunc(from.requires, named) {
		return ""
	}
	return fmt.Sprintf("the go.mod of module %s does not require its module", from.path)
}
