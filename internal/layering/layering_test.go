// Package layering checks the shape of the workspace: imports point down only,
// pure packages are pure, a backend's dependencies stay in its package, files
// stay small, and each module requires what it imports. registry_test.go says what belongs
// where.
package layering

import (
	"testing"
)

func TestTheProjectKeepsItsLayers(t *testing.T) {
	root, err := moduleRoot(mustGetwd(t))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := readTree(root)
	if err != nil {
		t.Fatal(err)
	}
	// So that reading nothing cannot pass for finding nothing.
	if n := len(tree.packages()); n < 10 {
		t.Fatalf("found %d packages in %s", n, root)
	}
	for _, w := range project.check(tree) {
		t.Error(w)
	}
}
