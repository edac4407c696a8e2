// Package docs has tests only: that the pages, the Makefile and the workflows say what is so, and that
// what they tell a user to run works.
package docs_test

import (
	"os"
	"testing"
)

// The tests read the repository from its root.
func TestMain(m *testing.M) {
	if err := os.Chdir(".."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
