package store

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
)

// opened is a store that remembers how it was opened.
type opened struct {
	Store
	url string
	o   OpenOptions
}

// A URL goes to the package that has registered its scheme, as it is.
func TestOpen(t *testing.T) {
	Register("test-open", func(_ context.Context, url string, o OpenOptions) (Store, error) { return &opened{url: url, o: o}, nil })
	if !slices.Contains(Schemes(), "test-open") {
		t.Errorf("known: %q", Schemes())
	}
	logger := slog.New(slog.DiscardHandler)
	for _, url := range []string{"test-open", "test-open:", "test-open://a:1,b:2?x=y", "test-open://a\ntest-open://b"} {
		s, err := Open(t.Context(), url, &OpenOptions{Logger: logger})
		if err != nil {
			t.Fatalf("%q: %v", url, err)
		}
		if got := s.(*opened); got.url != url || got.o.Logger != logger {
			t.Errorf("%q: opened as %+v", url, got)
		}
	}
	if _, err := Open(t.Context(), "test-open:", nil); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a scheme was registered twice")
		}
	}()
	Register("test-open", nil)
	Register("test-open", func(context.Context, string, OpenOptions) (Store, error) { return nil, nil })
}

// The error for an unknown scheme says what to import, or which schemes are known, and
// shows nothing that may be a password.
func TestOpenUnknown(t *testing.T) {
	Register("test-known", func(context.Context, string, OpenOptions) (Store, error) { return nil, nil })
	for url, says := range map[string]string{
		"redis://u:secret@a":         `import _ "github.com/leasehold-dev/leasehold/store/redisstore"`,
		"rediss-cluster://:secret@a": `import _ "github.com/leasehold-dev/leasehold/store/redisstore"`,
		"file:/secret":               `import _ "github.com/leasehold-dev/leasehold/store/filestore"`,
		"nope://u:secret@a":          `unknown store "nope://"`,
		"nope:secret":                "test-known:",
		"u:secret@a":                 "test-known:",
		"secret":                     "test-known:",
		"":                           "test-known:",
	} {
		s, err := Open(t.Context(), url, nil)
		if s != nil || !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want it to say %q", url, err, says)
		}
	}
}
