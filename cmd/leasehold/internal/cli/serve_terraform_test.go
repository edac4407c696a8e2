//go:build unix

package cli

import (
	"path/filepath"
	"testing"
)

// A folder of states has one server. The end of that one, even a kill, makes room for another.
func TestOneServerUsesAFolderOfStates(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	args := []string{"serve", "--listen", "127.0.0.1:0", "--terraform-state", filepath.Join(s.home, "states")}
	first := s.start(args...)
	serving(first)
	second := s.start(args...)
	second.says(&second.err, "another server keeps its states in ")
	if code := second.end(); code == 0 {
		t.Error("the second server ended with 0")
	}
	first.cmd.Process.Kill()
	first.end()
	serving(s.start(args...))
}
