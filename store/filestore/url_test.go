package filestore

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

func TestParseURL(t *testing.T) {
	for _, c := range []struct {
		url, path string
		shared    bool
	}{
		{"file", "", false},
		{"file:", "", false},
		{"file:?shared=true", "", true},
		{"file:locks", "locks", false},
		{"file:/a/b", "/a/b", false},
		{"file:///a/b", "/a/b", false},
		{"file:///a/b?shared=1", "/a/b", true},
		{"file:/a b#c&d", "/a b#c&d", false},
		{"file:/a%25b%3Fc", "/a%b?c", false},
	} {
		path, shared, err := parseURL(c.url)
		if err != nil || path != c.path || shared != c.shared {
			t.Errorf("%s: %q, %v, %v; want %q, %v", c.url, path, shared, err, c.path, c.shared)
		}
	}
	for url, says := range map[string]string{
		"file://host/a": "another machine", "file:/a?x=1": `"x"`, "file:/a?shared=maybe": "true or false",
		"file:/a%zz": "%25", "/a": "file:DIR", "": "file:DIR", "fileserver": "file:DIR", "file:/a?shared=%zz": "?shared=true",
	} {
		if _, err := Dir(url); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want words with %q", url, err, says)
		}
	}
}

// A file can be opened by its URL. A missing directory is an error unless it is that of the
// user's own file.
func TestOpenByURL(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	for url, path := range map[string]string{
		"file:" + filepath.Join(dir, "my locks"): filepath.Join(dir, "my locks"),
		"file":                                   filepath.Join(dir, "leasehold", "locks"),
	} {
		s, err := store.Open(t.Context(), url, nil)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		defer s.Close()
		r := request("a")
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := mustOpen(t, path, nil).Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrBusy) {
			t.Errorf("%s does not open %s: acquire a held lock: %v, want %v", url, path, err, store.ErrBusy)
		}
	}
	if s, err := store.Open(t.Context(), "file:"+filepath.Join(dir, "none", "locks"), nil); s != nil || err == nil {
		t.Errorf("open in a missing directory: %v, want an error", err)
	}
}

// What the options say is added to what the URL says.
func TestOptionsBesideTheURL(t *testing.T) {
	dir, o, err := resolve("file:/a?shared=true", &Options{MaxTTL: time.Minute, MakeDir: true})
	if err != nil || dir != "/a" || !o.Shared || !o.MakeDir || o.MaxTTL != time.Minute {
		t.Errorf("%s, %+v, %v", dir, o, err)
	}
}

func TestStateDir(t *testing.T) {
	home, state, local := t.TempDir(), t.TempDir(), t.TempDir()
	for _, c := range []struct {
		goos string
		env  map[string]string
		want string
	}{
		{"linux", map[string]string{"HOME": home}, filepath.Join(home, ".local", "state")},
		{"linux", map[string]string{"HOME": home, "XDG_STATE_HOME": state}, state},
		{"linux", map[string]string{"HOME": home, "XDG_STATE_HOME": "relative"}, filepath.Join(home, ".local", "state")},
		{"freebsd", map[string]string{"HOME": home}, filepath.Join(home, ".local", "state")},
		{"darwin", map[string]string{"HOME": home}, filepath.Join(home, "Library", "Application Support")},
		{"windows", map[string]string{"LocalAppData": local}, local},
		{"linux", nil, ""},
		{"darwin", nil, ""},
		{"windows", map[string]string{"HOME": home}, ""},
	} {
		got, err := stateDir(c.goos, func(k string) string { return c.env[k] })
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %v: %q, %v; want %q", c.goos, c.env, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "file:/") {
			t.Errorf("%v: does not name a URL to use", err)
		}
	}
}

// FuzzParseURL: any path can be written as a URL.
func FuzzParseURL(f *testing.F) {
	for _, path := range []string{"", "/var/lib/locks", "a b", "100%", "what?", "/x%2Fy", "C:\\x", "\xff\xfe", "a#b&c=d+e", "/C:/x"} {
		f.Add(path, true)
	}
	escape := strings.NewReplacer("%", "%25", "?", "%3F")
	f.Fuzz(func(t *testing.T, path string, shared bool) {
		if strings.HasPrefix(path, "//") || runtime.GOOS == "windows" {
			return // names another machine; has drives
		}
		raw := "file:" + escape.Replace(path)
		if shared {
			raw += "?shared=true"
		}
		got, gotShared, err := parseURL(raw)
		if err != nil || got != path || gotShared != shared {
			t.Errorf("%q: %q, shared %v, %v, want path %q", raw, got, gotShared, err, path)
		}
		_, _, _ = parseURL(path) // may return an error, but not panic
	})
}
