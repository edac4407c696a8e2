package leasehold_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Inspect shows the token that the holder has.
func TestShownTokenIsThatOfTheLease(t *testing.T) {
	server := redistest.Start(t)
	s, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	lease, err := leasehold.New(s, nil).Mutex("a").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Token != lease.Token() {
		t.Errorf("Inspect: token %v, %v, want %v", st.Token, err, lease.Token())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
