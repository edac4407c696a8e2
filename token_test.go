package leasehold_test

import (
	"testing"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Inspect shows the token that the holder has, although the lease has reserved more tokens
// for holders that it is passed on to.
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
	if st, err := s.Inspect(t.Context(), "a"); err != nil || st.Token != lease.Token() || st.Holder.Spare == 0 {
		t.Errorf("Inspect: token %v and %d spare tokens, %v, want token %v, with spare ones", st.Token, st.Holder.Spare, err, lease.Token())
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
