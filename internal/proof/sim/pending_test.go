package sim

import (
	"path/filepath"
	"strings"
	"testing"
)

// Scripts that show what is not mended yet; see pending.go. One that shows nothing any
// more belongs into testdata/kept.
func TestPending(t *testing.T) {
	files, err := filepath.Glob("testdata/pending/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".json"), func(t *testing.T) {
			r := Run(t, read(t, f), Switches{}, false)
			if len(r.Violations) == 0 {
				t.Errorf("nothing is wrong any more: move %s to testdata/kept", f)
				return
			}
			t.Log(r.Violations[0])
		})
	}
}
