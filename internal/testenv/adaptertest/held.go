package adaptertest

import (
	"testing"

	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Held checks that a lock is held on the Redis server at url.
func Held(t *testing.T, url, lock string) {
	t.Helper()
	st, err := redisstore.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if state, err := st.Inspect(t.Context(), lock); err != nil || !state.Held {
		t.Errorf("the lock is %+v (%v), want it held", state, err)
	}
}
