package screen

import (
	"os"
	"path/filepath"
	"testing"
)

// Wide characters need two columns and marks none, and no cut is wider than asked for.
func TestCut(t *testing.T) {
	for _, c := range []struct {
		text, want string
		columns    int
	}{
		{"abc", "abc", 3},
		{"abc", "ab", 2},
		{"日本語", "日本", 5},
		{"日本語", "日本語", 6},
		{"e\u0301e\u0301", "e\u0301", 1},
		{"a👍b", "a", 2},
		{"", "", 0},
	} {
		got := Cut(c.text, c.columns)
		if got != c.want || Width(got) > c.columns {
			t.Errorf("Cut(%q, %d) = %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	rows := [][]string{{"NAME", "HOLDER", "X"}, {"日本", "h", "1"}, {"a", "holder", "2"}}
	if got, want := Table(rows), "NAME  HOLDER  X\n日本  h       1\na     holder  2\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A file has no colours.
func TestColours(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := ColoursOn(f).Red("x"); got != "x" {
		t.Errorf("red on a file is %q, want %q", got, "x")
	}
	if got := Colours(true).Red("x"); got != "\x1b[31;1mx\x1b[0m" {
		t.Errorf("red is %q", got)
	}
}
