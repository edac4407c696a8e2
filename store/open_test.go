package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// opened is a store that remembers how it was opened.
type opened struct {
	Engine
	url string
	o   OpenOptions
}

func (*opened) Caps() Caps { return Caps{} }

// unusedScheme returns a scheme that is not registered, also if the tests run more than once.
func unusedScheme(name string) string {
	for n := 0; ; n++ {
		if scheme := fmt.Sprint(name, n); !slices.Contains(Schemes(), scheme) {
			return scheme
		}
	}
}

// Open passes the URL, unchanged, to the package that has registered its scheme.
func TestOpen(t *testing.T) {
	scheme := unusedScheme("test-open")
	Register(scheme, func(_ context.Context, url string, o OpenOptions) (*Store, error) {
		return New(&opened{url: url, o: o}), nil
	})
	if !slices.Contains(Schemes(), scheme) {
		t.Errorf("Schemes() = %q, want %q among them", Schemes(), scheme)
	}
	logger := slog.New(slog.DiscardHandler)
	for _, url := range []string{scheme, scheme + ":", scheme + "://a:1,b:2?x=y", scheme + "://a\n" + scheme + "://b"} {
		s, err := Open(t.Context(), url, &OpenOptions{Logger: logger})
		if err != nil {
			t.Fatalf("%q: %v", url, err)
		}
		if got := s.Engine().(*opened); got.url != url || got.o.Logger != logger {
			t.Errorf("%q: opened with %+v, want the URL and the logger unchanged", url, got)
		}
	}
	if _, err := Open(t.Context(), scheme+":", nil); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the second registration of a scheme did not panic")
		}
	}()
	Register(scheme, nil)
	Register(scheme, func(context.Context, string, OpenOptions) (*Store, error) { return nil, nil })
}

// The error for an unknown scheme says what to import, or which schemes are known. It shows
// nothing that may be a password.
func TestOpenUnknown(t *testing.T) {
	known := unusedScheme("test-known")
	Register(known, func(context.Context, string, OpenOptions) (*Store, error) { return nil, nil })
	for url, says := range map[string]string{
		"redis://u:secret@a":         `import _ "github.com/leasehold-dev/leasehold/store/redisstore"`,
		"rediss-cluster://:secret@a": `import _ "github.com/leasehold-dev/leasehold/store/redisstore"`,
		"file:/secret":               `import _ "github.com/leasehold-dev/leasehold/store/filestore"`,
		"nope://u:secret@a":          `unknown store "nope://"`,
		"nope:secret":                known + ":",
		"u:secret@a":                 known + ":",
		"secret":                     known + ":",
		"":                           known + ":",
	} {
		s, err := Open(t.Context(), url, nil)
		if s != nil || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want ErrUnsupported that says %q and shows no secret", url, err, says)
		}
	}
}
