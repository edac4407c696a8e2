package filestore

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func examineFile(t *testing.T, path string, o *Options) FileExamination {
	t.Helper()
	e, err := ExamineFile(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	if e.Path != path || e.Network != "" {
		t.Errorf("%+v, want the path and no network", e)
	}
	return e
}

func TestExamineFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "locks.db")
	s, err := OpenFile(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if e := examineFile(t, path, nil); e.Missing || e.Exposed != nil || e.Unusable != nil || e.Journal != "wal" {
		t.Errorf("a sound file: %+v, want no complaint and the journal wal", e)
	}
	s, err = OpenFile(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if locks, err := s.List(t.Context(), ""); err != nil || len(locks) != 0 {
		t.Errorf("the examination left the locks %v (%v), want none", locks, err)
	}
}

func TestExamineMissingFile(t *testing.T) {
	dir := t.TempDir()
	if e := examineFile(t, filepath.Join(dir, "a", "b", "locks.db"), &Options{MakeDir: true}); !e.Missing || e.Unusable != nil {
		t.Errorf("%+v, want the file missing and usable", e)
	}
	if e := examineFile(t, filepath.Join(dir, "a", "locks.db"), nil); !e.Missing || e.Unusable == nil {
		t.Errorf("no directory: %+v, want it missing and unusable", e)
	}
	if e := examineFile(t, filepath.Join(dir, "locks.db"), nil); !e.Missing || e.Unusable != nil {
		t.Errorf("%+v, want the file missing and usable", e)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("the examination left the files %v (%v), want none", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := examineFile(t, filepath.Join(dir, "file", "locks.db"), nil); e.Unusable == nil {
		t.Errorf("a file in place of the directory: %+v, want it unusable", e)
	}
}

func TestExamineUnusableFile(t *testing.T) {
	dir := t.TempDir()
	if e := examineFile(t, dir, nil); e.Unusable == nil || !strings.Contains(e.Unusable.Error(), "directory") {
		t.Errorf("a directory: %v, want an error that names it so", e.Unusable)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := examineFile(t, text, nil); e.Unusable == nil || !strings.Contains(e.Unusable.Error(), "not an SQLite database") {
		t.Errorf("a text: %v, want that it is no SQLite database", e.Unusable)
	}
	if _, err := ExamineFile(t.Context(), "", nil); err == nil {
		t.Error("an empty path is accepted, want an error")
	}
}

// The examination reports the journal as it was before the file was opened, which changes it.
func TestExamineJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=journal_mode(DELETE)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE leasehold_other (a)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := examineFile(t, path, nil); e.Journal != "delete" || e.Unusable != nil {
		t.Errorf("%+v, want the journal delete, and usable", e)
	}
	if e := examineFile(t, path, nil); e.Journal != "wal" {
		t.Errorf("after it was opened: %+v, want the journal wal", e)
	}
	empty := filepath.Join(t.TempDir(), "empty.db")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := examineFile(t, empty, nil); e.Journal != "" || e.Unusable != nil {
		t.Errorf("an empty file: %+v, want a usable one without a journal", e)
	}
}
