package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadURLs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# nodes\n\nredis://u:p@a\r\n  redis://u:q@b  ")
	if got, err := readURLs(path); err != nil || !slices.Equal(got, []string{"redis://u:p@a", "redis://u:q@b"}) {
		t.Errorf("%q, %v, want the two URLs without comments and spaces", got, err)
	}
	write("# nothing\n")
	if _, err := readURLs(path); err == nil {
		t.Error("an empty file: no error, want one")
	}
}

func TestSchemes(t *testing.T) {
	for _, url := range []string{"file", "file:/x", "redis://a", "rediss://a", "memory:"} {
		if _, err := schemeOf([]string{url}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := schemeOf([]string{"redis://a", "rediss://b"}); err != nil {
		t.Error(err)
	}
	for _, urls := range [][]string{{"redis://a", "file:/x"}, {"file:/x", "file:/y"}, {"nope://u:secret@a"}, {"u:secret@a"}, {"secret"}, {"/secret"}, {""}} {
		_, err := schemeOf(urls)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want no %q", urls, err, "secret")
		}
	}
}
