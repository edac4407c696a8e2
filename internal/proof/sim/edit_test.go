package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The text that a change replaces occurs in some script. A change that replaces nothing would
// remove no mechanism, and the checkers would seem to miss it.
func TestChangesChangeScripts(t *testing.T) {
	var files []string
	for _, dir := range []string{"lua", "lua/calls"} {
		found, err := filepath.Glob("../../../store/redisstore/internal/script/" + dir + "/*.lua")
		if err != nil || len(found) == 0 {
			t.Fatalf("no scripts: %v", err)
		}
		files = append(files, found...)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for name, pairs := range changes {
		for _, c := range pairs {
			if !strings.Contains(all.String(), c.old) {
				t.Errorf("%s: no script has %q", name, c.old)
			}
		}
	}
}
