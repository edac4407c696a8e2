package sim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The text that a change replaces occurs in some script. A change that replaces nothing
// would remove no mechanism, and would seem to be missed or needless.
func TestChangesChangeScripts(t *testing.T) {
	files, err := filepath.Glob("../../../store/redisstore/internal/script/lua/*.lua")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
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
