package layering

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// stale returns the entries of the registry that nothing needs: packages that are gone, imports
// that no file has, and functions that do not wait.
func (r rules) stale(t tree) []string {
	var wrong []string
	report := func(format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf(format, args...)+": take it out of "+register)
	}
	present := t.packages()
	for _, pkg := range slices.Concat(r.layers...) {
		if !slices.Contains(present, pkg) {
			report("%s: there is no such package", pkg)
		}
	}
	imports := t.imported()
	for _, pkg := range slices.Sorted(maps.Keys(r.only)) {
		for _, to := range r.only[pkg] {
			if !imports[pkg][to] {
				report("%s: may know %s, and does not", pkg, to)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(r.usedBy)) {
		for _, from := range r.usedBy[pkg] {
			if !imports[from][pkg] {
				report("%s: is there for %s, which does not import it", pkg, from)
			}
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(r.modules)) {
		for _, m := range r.modules[pkg] {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(imports[pkg])), func(to string) bool { return within(to, m) }) {
				report("%s: may depend on %s, and does not", pkg, m)
			}
		}
	}
	waits := map[string]bool{}
	for _, f := range t.files {
		for _, w := range timedWaits(f.syntax) {
			waits[f.pkg+"."+w.in] = waits[f.pkg+"."+w.in] || !f.test
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.idioms.waits)) {
		if !waits[id] {
			report("%s: may wait for a time, and does not", id)
		}
	}
	return wrong
}

// imported returns what the files of each package import, except its tests: paths relative to
// the root module, and the import paths of other modules.
func (t tree) imported() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, f := range t.files {
		if f.test {
			continue
		}
		if all[f.pkg] == nil {
			all[f.pkg] = map[string]bool{}
		}
		for _, path := range f.imports() {
			if own, ok := t.own(path); ok {
				path = own
			}
			all[f.pkg][path] = true
		}
	}
	return all
}

// An entry of the registry that nothing needs is found.
func TestStaleEntriesAreFound(t *testing.T) {
	const pkg = "internal/quorum"
	tree := readFiles(t, map[string]string{
		"store/redisstore/redis.go": `package redis; import ("time"; _ "example.org/m/internal/quorum"; _ "example.com/needed/part"); func poll() { time.Sleep(1) }`,
		"internal/quorum/quorum.go": `package quorum; type T struct{}; func (T) a() { b() }`,
		"internal/quorum/b.go":      `package quorum; func b() { T{}.a() }`,
	})
	sound := rules{
		layers:  [][]string{{"store/redisstore"}, {pkg}},
		only:    map[string][]string{"store/redisstore": {pkg}},
		usedBy:  map[string][]string{pkg: {"store/redisstore"}},
		modules: map[string][]string{"store/redisstore": {"example.com/needed"}},
		idioms:  idioms{waits: map[string]string{"store/redisstore.poll": "polls"}},
	}
	if wrong := sound.stale(tree); len(wrong) != 0 {
		t.Errorf("found %q in a registry without stale entries", wrong)
	}
	for want, break_ := range map[string]func(*rules){
		"internal/gone: there is no such package":                    func(r *rules) { r.layers = append(slices.Clone(r.layers), []string{"internal/gone"}) },
		"internal/quorum: may know store, and does not":              func(r *rules) { r.only = map[string][]string{pkg: {"store"}} },
		"there for store, which does not import it":                  func(r *rules) { r.usedBy = map[string][]string{pkg: {"store"}} },
		"internal/quorum: may depend on example.com/m, and does not": func(r *rules) { r.modules = map[string][]string{pkg: {"example.com/m"}} },
		"internal/quorum.b: may wait for a time, and does not":       func(r *rules) { r.idioms.waits = map[string]string{pkg + ".b": "polls"} },
	} {
		r := sound
		break_(&r)
		if wrong := r.stale(tree); len(wrong) != 1 || !strings.Contains(wrong[0], want) {
			t.Errorf("found %q, want one line with %q", wrong, want)
		}
	}
}
