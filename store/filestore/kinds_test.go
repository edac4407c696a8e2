//go:build unix

package filestore

import (
	"path/filepath"
	"testing"

	"github.com/leasehold-dev/leasehold/store"
)

// A release that hands permits to several waiters draws a token for each of them: none is
// drawn again once the lock's row is gone.
func TestTokensOfSeveralTurns(t *testing.T) {
	s := newFakeMachine().open(t, filepath.Join(t.TempDir(), "locks.db"))
	lease := func(weight int64) store.Lease {
		r := request("a")
		r.Kind, r.Weight = store.Semaphore(3), weight
		return r
	}
	holder := lease(3)
	mustAcquire(t, s, holder)
	var waiters []store.Lease
	var grants []<-chan store.Grant
	for range 3 {
		r := lease(1)
		waiters = append(waiters, r)
		grants = append(grants, waitFor(t, s, r))
	}
	mustRelease(t, s, holder)
	last := store.Grant{}
	for i, c := range grants {
		if g := <-c; g.Token <= last.Token {
			t.Errorf("token %v after %v, want a larger one", g.Token, last.Token)
		} else {
			last = g
		}
		mustRelease(t, s, waiters[i])
	}
	if g := mustAcquire(t, s, request("a")); g.Token <= last.Token {
		t.Errorf("token %v after %v, want a larger one", g.Token, last.Token)
	}
}
