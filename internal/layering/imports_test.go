package layering

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// rules say which package may import which. The comments of project explain the fields.
type rules struct {
	layers    [][]string
	equipment []string
	only      map[string][]string
	usedBy    map[string][]string
	modules   map[string][]string
	pure      []string
	idioms    idioms
}

const register = "internal/layering/registry_test.go"

// matches reports whether pkg is one of the entries.
func matches(pkg string, entries []string) bool {
	for _, e := range entries {
		parent, below := strings.CutSuffix(e, "/*")
		if e == pkg || below && path.Dir(pkg) == parent {
			return true
		}
	}
	return false
}

// find returns the value of the key that matches pkg.
func find(pkg string, m map[string][]string) ([]string, bool) {
	for key, v := range m {
		if matches(pkg, []string{key}) {
			return v, true
		}
	}
	return nil, false
}

// layer returns the number of the package's layer, from the top.
func (r rules) layer(pkg string) (int, bool) {
	i := slices.IndexFunc(r.layers, func(l []string) bool { return matches(pkg, l) })
	return i, i >= 0
}

// check returns what is wrong with the tree, one line each.
func (r rules) check(t tree) []string {
	var wrong []string
	for _, pkg := range t.packages() {
		if _, ok := r.layer(pkg); !ok {
			wrong = append(wrong, fmt.Sprintf("%s: belongs to no layer: register it in %s", pkg, register))
		}
	}
	for _, f := range t.files {
		for _, imported := range f.imports() {
			problem := r.checkImport(t, f, imported)
			if problem == "" {
				problem = checkModule(t, f, imported)
			}
			if problem != "" {
				wrong = append(wrong, fmt.Sprintf("%s: imports %s: %s", f.path, imported, problem))
			}
		}
		if !f.test && matches(f.pkg, r.pure) {
			wrong = append(wrong, impurities(t, f)...)
		}
		if !f.test {
			wrong = append(wrong, r.idioms.check(t, f)...)
		}
		wrong = append(wrong, checkShape(f)...)
	}
	wrong = append(wrong, r.idioms.checkStores(t)...)
	return append(wrong, r.checkClient(t)...)
}

// checkImport returns what is wrong with one import, or "".
func (r rules) checkImport(t tree, f file, imported string) string {
	to, own := t.own(imported)
	equipped := f.test || matches(f.pkg, r.equipment)
	if !own {
		allowed, _ := find(f.pkg, r.modules)
		if !t.foreign(imported) || equipped || slices.ContainsFunc(allowed, func(m string) bool { return within(imported, m) }) {
			return ""
		}
		return "a module this package may not depend on: if it belongs here, list it in " + register
	}
	// Tests may import any package: an example of the client needs a store.
	if f.test {
		return ""
	}
	from, known := r.layer(f.pkg)
	down, knownToo := r.layer(to)
	only, limited := find(f.pkg, r.only)
	users, restricted := find(to, r.usedBy)
	switch {
	case !known || !knownToo:
		return "" // reported as unregistered
	case matches(to, r.equipment) && !equipped:
		return "test equipment, which only test files may import"
	case down <= from:
		return "imports point down only, and it is in the same layer or above"
	case limited && !matches(to, only):
		return "of ours, this package may know " + list(only) + " only"
	case restricted && !equipped && !matches(f.pkg, users):
		return "it is there for " + list(users) + " only"
	}
	return ""
}

// checkClient returns where the client, directly or indirectly, needs more than the standard
// library.
func (r rules) checkClient(t tree) []string {
	var wrong []string
	way := map[string]string{".": "the root package"}
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		for _, f := range t.files {
			if f.pkg != queue[0] || f.test {
				continue
			}
			for _, imported := range f.imports() {
				to, own := t.own(imported)
				switch {
				case t.foreign(imported) && r.checkImport(t, f, imported) == "": // otherwise it is reported already
					wrong = append(wrong, fmt.Sprintf("%s: imports %s: the client needs only the standard library (%s)", f.path, imported, way[f.pkg]))
				case own && way[to] == "":
					way[to] = way[f.pkg] + " -> " + to
					queue = append(queue, to)
				}
			}
		}
	}
	return wrong
}

// within reports whether an import path is that module, or in it.
func within(importPath, module string) bool {
	return importPath == module || strings.HasPrefix(importPath, module+"/")
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
