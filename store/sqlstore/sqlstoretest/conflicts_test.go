package sqlstoretest

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// deadlock makes the store renew leases of a and b while another session locks their rows in the
// opposite order, until the server ends the renewal. It returns the other session's transaction,
// which has locked both rows, and the result of the renewal, which is made again.
func deadlock(t *testing.T, on *bed, s *sqlstore.Store, schema string, leases []store.Lease) (other *sql.Tx, renewed <-chan error) {
	t.Helper()
	// PostgreSQL ends the first session that looks for a deadlock and finds one, MySQL the one that
	// has written less.
	var patient []string
	if on.dialect == sqlstore.PostgreSQL {
		patient = []string{"deadlock_timeout=20000"}
	}
	db := on.handle(t, patient...)
	waiting := strings.ReplaceAll(on.holding, ".hold(", ".renew(")
	lock := func(tx *sql.Tx, name string) error {
		var n int
		return tx.QueryRowContext(t.Context(), on.in(schema, `SELECT 1 FROM S.locks WHERE name = ? FOR UPDATE`), []byte(name)).Scan(&n)
	}
	eventually.True(t, "the server ends the renewal", func() bool {
		tx := begin(t, db, sql.LevelReadCommitted)
		for range 100 {
			if _, err := tx.ExecContext(t.Context(), on.in(schema, `INSERT INTO S.tombs (name, owner, ends) VALUES (?, ?, 1)`), []byte("other"), []byte(store.NewOwner())); err != nil {
				t.Fatal(err)
			}
		}
		if err := lock(tx, "b"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- errors.Join(s.Renew(t.Context(), leases)...) }()
		eventually.True(t, "the renewal waits for the row of b", func() bool {
			return on.waitsForRows(t, on.handle(t), schema, waiting) > 0
		})
		// The renewal has locked a, and cannot go on. So this succeeds only if the server ends it.
		if err := lock(tx, "a"); err != nil {
			tx.Rollback()
			<-done
			return false
		}
		other, renewed = tx, done
		return true
	})
	return other, renewed
}

// The server ends a call because of a deadlock with another session. The store makes the call again,
// and names the deadlock if that does not help.
func TestDeadlock(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		leases := []store.Lease{lease("a"), lease("b")}
		s := on.open(t, schema, sqlstore.Options{Timeout: patience})
		for _, l := range leases {
			mustAcquire(t, s, l)
		}
		other, renewed := deadlock(t, on, s, schema, leases)
		if err := other.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-renewed; err != nil {
			t.Errorf("renew after a deadlock: %v, want a second try", err)
		}

		brief := on.open(t, schema, sqlstore.Options{Timeout: 4 * time.Second})
		other, renewed = deadlock(t, on, brief, schema, leases)
		err := <-renewed
		var q *store.QuorumError
		if !errors.As(err, &q) || q.Count(store.Unsettled) != 1 || !strings.Contains(strings.ToLower(err.Error()), "deadlock") {
			t.Errorf("renew while the other session keeps the rows: %v, want an error that names the deadlock, and says that nothing was done", err)
		}
		if err := other.Rollback(); err != nil {
			t.Fatal(err)
		}
		for _, l := range leases {
			if st := inspect(t, s, l.Name); st.Holder.Owner != l.Owner {
				t.Errorf("inspect after the deadlocks: %+v, want the holder %s", st, l.Owner)
			}
			mustRelease(t, s, l)
		}
	})
}

// A call that fails because of a serialization failure is made again. The store's own
// transactions have none, since they are READ COMMITTED, but triggers, poolers and servers that
// resemble PostgreSQL may report one.
func TestSerializationFailure(t *testing.T) {
	t.Parallel()
	s, schema := postgres.newStore(t)
	mustGet(t, s, "x")
	asSuperuser(t, strings.ReplaceAll(`CREATE SEQUENCE S.tries`, "S.", schema+"."))
	asSuperuser(t, strings.ReplaceAll(`CREATE FUNCTION S.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('S.tries') % 3 <> 0 THEN RAISE 'could not serialize access' USING ERRCODE = '40001'; END IF;
		RETURN NEW;
	END $$`, "S.", schema+"."))
	asSuperuser(t, strings.ReplaceAll(`CREATE TRIGGER fail BEFORE UPDATE ON S.locks FOR EACH ROW EXECUTE FUNCTION S.fail()`, "S.", schema+"."))
	l := lease("x")
	mustAcquire(t, s, l)
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Errorf("renew: %v, want further tries", err)
	}
	mustRelease(t, s, l)
	if n := postgres.number(t, postgres.handle(t), schema, `SELECT last_value FROM S.tries`); n != 9 {
		t.Errorf("%d tries of three calls that fail twice each, want 9", n)
	}
	// Now each call fails.
	asSuperuser(t, `ALTER SEQUENCE `+schema+`.tries INCREMENT BY 3 RESTART WITH 1`)
	brief := postgres.open(t, schema, sqlstore.Options{Timeout: time.Second})
	_, err := brief.Acquire(t.Context(), store.AcquireRequest{Lease: lease("x")})
	var q *store.QuorumError
	if !errors.As(err, &q) || q.Count(store.Unsettled) != 1 || !strings.Contains(err.Error(), "could not serialize") {
		t.Errorf("acquire while all calls fail: %v, want an error that names the failure, and says that nothing was done", err)
	}
}

// A call that waits for a row of another session longer than the server allows is made again,
// and its error says so if that does not help.
func TestRowOfAnotherSession(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		schema := on.newSchema(t)
		s := on.open(t, schema, sqlstore.Options{Timeout: 3 * time.Second}, on.lockTimeout)
		mustGet(t, s, "x")
		other := begin(t, on.handle(t), sql.LevelReadCommitted)
		var n int
		if err := other.QueryRowContext(t.Context(), on.in(schema, `SELECT 1 FROM S.locks WHERE name = ? FOR UPDATE`), []byte("x")).Scan(&n); err != nil {
			t.Fatal(err)
		}
		l := lease("x")
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		var q *store.QuorumError
		if !errors.As(err, &q) || q.Count(store.Unsettled) != 1 || !strings.Contains(strings.ToLower(err.Error()), "lock") || !strings.Contains(err.Error(), "conflicts") {
			t.Errorf("acquire while another session keeps the row: %v, want an error that says so, and that nothing was done", err)
		}
		waiter := wait(t, s, lease("x"))
		eventually.True(t, "the waiter reports the trouble", waiter.troubled)
		if err := other.Commit(); err != nil {
			t.Fatal(err)
		}
		waiter.granted(t)
	})
}
