package sqlstoretest

import (
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// openURL opens a store as a program with only a URL does.
func openURL(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
