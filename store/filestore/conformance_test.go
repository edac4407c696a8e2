package filestore

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestFileConforms(t *testing.T) {
	t.Parallel() // it mostly waits
	var path string
	storetest.Run(t, func(t *testing.T) *store.Store {
		path = filepath.Join(t.TempDir(), "state", "locks")
		return mustOpen(t, path, &Options{MakeDir: true})
	}, storetest.Options{
		Second: func(t *testing.T) *store.Store { return mustOpen(t, path, nil) },
	})
}

// urlOf returns the URL of a folder.
func urlOf(dir string) string { return "file:" + url.PathEscape(dir) }

func mustOpen(t testing.TB, path string, o *Options) *store.Store {
	t.Helper()
	s, err := Open(context.WithoutCancel(t.Context()), urlOf(path), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func request(name string) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: 60e9}
}

func mustAcquire(t testing.TB, s *store.Store, r store.Lease) store.Grant {
	t.Helper()
	g, err := s.Acquire(context.WithoutCancel(t.Context()), store.AcquireRequest{Lease: r})
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Name, err)
	}
	return g
}

func mustRelease(t testing.TB, s *store.Store, r store.Lease) {
	t.Helper()
	if err := s.Release(context.WithoutCancel(t.Context()), store.ReleaseRequest{Lease: r}); err != nil {
		t.Fatalf("release %q: %v", r.Name, err)
	}
}

func engineOf(s *store.Store) *engine { return s.Engine().(*engine) }
