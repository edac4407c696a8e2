// Package layering checks the shape of the workspace. Imports point down only, pure packages
// are pure, the dependencies of a store stay in its package, each module requires what it
// imports, and idioms are kept. registry_test.go lists what belongs where.
package layering

import (
	"os"
	"slices"
	"testing"
)

// root is the directory of the root module.
const root = "../.."

func TestTheProjectKeepsItsLayers(t *testing.T) {
	tree, err := readTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	// If nothing were read, nothing wrong would be found.
	if n := len(tree.packages()); n < 10 {
		t.Fatalf("found %d packages in %s, want 10 at least", n, root)
	}
	for _, w := range slices.Concat(project.check(tree), project.stale(tree)) {
		t.Error(w)
	}
}
