//go:build unix

package filestore

import (
	"os"
	"path/filepath"
	"testing"
)

func TestExamineExposedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if e := examineFile(t, path, nil); e.Exposed == nil || e.Unusable != nil {
		t.Errorf("%+v, want it exposed and usable", e)
	}
	if e := examineFile(t, path, &Options{Shared: true}); e.Exposed == nil || !e.Shared || e.Unusable != nil {
		t.Errorf("declared shared: %+v, want it exposed and usable", e)
	}
}
