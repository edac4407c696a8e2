package leasehold_test

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// patient returns the options with which the servers of a loaded machine answer in time, also
// while stores connect.
func patient() *redisstore.Options {
	return &redisstore.Options{NodeTimeout: 10 * time.Second, ConnectTimeout: 10 * time.Second}
}

// Inspect shows the token that the holder has.
func TestShownTokenIsThatOfTheLease(t *testing.T) {
	server := redistest.Start(t)
	s, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), patient())
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
