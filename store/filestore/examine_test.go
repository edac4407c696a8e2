package filestore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func examine(t *testing.T, path string, o *Options) Examination {
	t.Helper()
	e, err := Examine(t.Context(), urlOf(path), o)
	if err != nil {
		t.Fatal(err)
	}
	if e.Path != path || e.Network != "" {
		t.Errorf("%+v, want the path and no network", e)
	}
	return e
}

func TestExamineFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	if err := mustOpen(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	if e := examine(t, path, nil); e.Missing || e.Exposed != nil || e.Unusable != nil {
		t.Errorf("a sound folder: %+v, want no complaint", e)
	}
	if locks, err := mustOpen(t, path, nil).List(t.Context(), ""); err != nil || len(locks) != 0 {
		t.Errorf("the examination left the locks %v (%v), want none", locks, err)
	}
}

func TestExamineMissingFolder(t *testing.T) {
	dir := t.TempDir()
	if e := examine(t, filepath.Join(dir, "a", "b", "locks"), &Options{MakeDir: true}); !e.Missing || e.Unusable != nil {
		t.Errorf("%+v, want the folder missing and usable", e)
	}
	if e := examine(t, filepath.Join(dir, "a", "locks"), nil); !e.Missing || e.Unusable == nil {
		t.Errorf("no directory: %+v, want it missing and unusable", e)
	}
	if e := examine(t, filepath.Join(dir, "locks"), nil); !e.Missing || e.Unusable != nil {
		t.Errorf("%+v, want the folder missing and usable", e)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the examination left the files %v (%v), want none", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := examine(t, filepath.Join(dir, "file", "locks"), nil); e.Unusable == nil {
		t.Errorf("a file in place of the directory: %+v, want it unusable", e)
	}
}

func TestExamineUnusableFolder(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := examine(t, text, nil); e.Unusable == nil || !strings.Contains(e.Unusable.Error(), "not a directory") {
		t.Errorf("a text: %v, want that it is not a directory", e.Unusable)
	}
	if _, err := Examine(t.Context(), "", nil); err == nil {
		t.Error("an empty path is accepted, want an error")
	}
}
