package sqlstoretest

import (
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
)

// A release that has waited for a change of the lock's row, such as a renewal, frees the lock or
// hands it on: it writes the row as it is after the change.
func TestReleaseAfterAChange(t *testing.T) {
	t.Parallel()
	for _, contended := range []bool{false, true} {
		for _, rejoin := range []bool{false, true} {
			s, schema := postgres.newStore(t)
			db := postgres.handle(t)
			l, next := lease("x"), lease("x")
			mustAcquire(t, s, l)
			var w *waiter
			if contended {
				w = wait(t, s, lease("x"))
				eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
			}
			tx := begin(t, db, 0)
			if _, err := tx.ExecContext(t.Context(), `UPDATE `+schema+`.locks SET ends = ends + 1`); err != nil {
				t.Fatal(err)
			}
			released := make(chan error)
			go func() {
				var err error
				if rejoin {
					_, err = s.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: l}, store.WaitRequest{Lease: next})
				} else {
					err = s.Release(t.Context(), store.ReleaseRequest{Lease: l})
				}
				released <- err
			}()
			eventually.True(t, "the release waits for the row", func() bool {
				return postgres.number(t, db, schema, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%' || 'S' || '.release%'`) == 1
			})
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-released; err != nil {
				t.Errorf("contended %v, rejoin %v: release: %v", contended, rejoin, err)
			}
			st := inspect(t, s, "x")
			switch {
			case contended && st.Holder.Owner != w.r.Owner:
				t.Errorf("rejoin %v: the lock has the holder %+v after the release, want the waiter", rejoin, st.Holder)
			case !contended && st.Held:
				t.Errorf("rejoin %v: the lock is held after the release: %+v", rejoin, st)
			}
			if contended {
				w.granted(t)
			}
		}
	}
}
