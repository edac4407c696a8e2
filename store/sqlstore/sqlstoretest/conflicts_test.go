package sqlstoretest

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

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
	asSuperuser(t, strings.ReplaceAll(`CREATE TRIGGER fail BEFORE UPDATE ON S.records FOR EACH ROW EXECUTE FUNCTION S.fail()`, "S.", schema+"."))
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
	// If the time is over while a call is under way, that one may have taken effect.
	if !errors.As(err, &q) || q.Count(store.Unsettled)+q.Count(store.TimedOut) != 1 || !strings.Contains(err.Error(), "could not serialize") {
		t.Errorf("acquire while all calls fail: %v, want an error that names the failure", err)
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
		if err := other.QueryRowContext(t.Context(), on.in(schema, `SELECT 1 FROM S.records WHERE k = ? FOR UPDATE`), recordstore.Key("x")).Scan(&n); err != nil {
			t.Fatal(err)
		}
		l := lease("x")
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
		if errors.Is(err, store.ErrBusy) || err == nil || !strings.Contains(strings.ToLower(err.Error()), "lock") || !strings.Contains(err.Error(), "conflicts") {
			t.Errorf("acquire while another session keeps the row: %v, want an error that says so", err)
		}
		waiter := wait(t, s, lease("x"))
		eventually.True(t, "the waiter reports the trouble", waiter.troubled)
		if err := other.Commit(); err != nil {
			t.Fatal(err)
		}
		waiter.granted(t)
	})
}
