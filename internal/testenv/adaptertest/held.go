package adaptertest

import (
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// Held checks that a lock is held on the Redis server at url.
func Held(t *testing.T, url, lock string) {
	t.Helper()
	st, err := redisstore.Open(t.Context(), url, Patient())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if state, err := st.Inspect(t.Context(), lock); err != nil || !state.Held {
		t.Errorf("the lock is %+v (%v), want it held", state, err)
	}
}

// Patient returns options of a store with a timeout that suffices on a loaded machine.
func Patient() *redisstore.Options {
	return &redisstore.Options{NodeTimeout: 5 * time.Second, ConnectTimeout: 30 * time.Second}
}
