// Package layering checks the shape of the workspace: imports point down only,
// pure packages are pure, a backend's dependencies stay in its package, files
// stay small, each module requires what it imports, and what is done in one way
// is done in no other. registry_test.go says what belongs where.
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
	// So that reading nothing cannot pass for finding nothing.
	if n := len(tree.packages()); n < 10 {
		t.Fatalf("found %d packages in %s", n, root)
	}
	for _, w := range slices.Concat(project.check(tree), project.stale(tree)) {
		t.Error(w)
	}
}
