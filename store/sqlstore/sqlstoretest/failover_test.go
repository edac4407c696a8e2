package sqlstoretest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// Stores that know both servers go on with a synchronous standby that is promoted when
// the primary is killed. Leases stay, and meanwhile no lock has two holders and no token
// goes back. Before the promotion, the error of Open says that the standby is one.
func TestStandbyIsPromoted(t *testing.T) {
	t.Parallel()
	primary, err := sqltest.LaunchPostgreSQL("fsync=on", "full_page_writes=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Close)
	on := postgres.at(primary)
	schema := on.newSchema(t)
	standby, err := sqltest.LaunchStandby(primary, "fsync=on", "full_page_writes=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Close)
	db := on.handle(t)
	for _, query := range []string{`ALTER SYSTEM SET synchronous_standby_names = '*'`, `SELECT pg_reload_conf()`} {
		if _, err := db.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "the standby is synchronous", func() bool {
		var n int
		if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})

	there := postgres.at(standby)
	_, err = newBy(t, sqlstore.PostgreSQL, "pgx", there.dsn(), &sqlstore.Options{Schema: schema})
	if err == nil || !strings.Contains(err.Error(), "standby") {
		t.Errorf("open on a standby: %v, want an error that says so", err)
	}

	addresses := *primary
	addresses.Addr += "," + standby.Addr
	both := postgres.at(&addresses)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var c contest
	var all sync.WaitGroup
	for range 3 {
		s := both.open(t, schema, sqlstore.Options{}, "connect_timeout=2", "target_session_attrs=read-write")
		if got := s.Caps().Class; got != store.CrashSafe {
			t.Errorf("class %v with a synchronous standby, want %v", got, store.CrashSafe)
		}
		all.Go(func() { c.run(ctx, s, "x", 3*time.Second) })
	}
	s := both.open(t, schema, sqlstore.Options{}, "connect_timeout=2", "target_session_attrs=read-write")
	kept := store.Lease{Name: "kept", Owner: store.NewOwner(), TTL: time.Minute, Require: store.CrashSafe}
	g := mustAcquire(t, s, kept)
	eventually.True(t, "the lock is passed round", func() bool { return c.count() > 10 })

	primary.Kill()
	if _, err := there.handle(t).ExecContext(t.Context(), `SELECT pg_promote()`); err != nil {
		t.Fatal(err)
	}
	before := c.count()
	eventually.True(t, "the lock is passed round on the standby", func() bool { return c.count() > before+10 })
	stop()
	all.Wait()
	c.verdict(t, 20)
	eventually.True(t, "the store has no connection to the primary left", func() bool {
		_, err := s.Inspect(t.Context(), "kept")
		return err == nil
	})
	if st := inspect(t, s, "kept"); st.Holder.Owner != kept.Owner || st.Token != g.Token {
		t.Errorf("inspect a lease from before the failover: %+v, want the holder %s with token %v", st, kept.Owner, g.Token)
	}
	if err := s.Renew(t.Context(), []store.Lease{kept})[0]; err != nil {
		t.Errorf("renew a lease from before the failover: %v", err)
	}
	mustRelease(t, s, kept)
}

// A standby that was behind when it is promoted has forgotten the last grants. Their holders learn of it
// so at the next renewal, and none of them replaces what the new primary has.
func TestStandbyThatIsBehindIsPromoted(t *testing.T) {
	t.Parallel()
	primary, err := sqltest.LaunchPostgreSQL("fsync=on", "full_page_writes=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Close)
	on := postgres.at(primary)
	schema := on.newSchema(t)
	known := lease("x")
	first := mustAcquire(t, on.open(t, schema, sqlstore.Options{}), known)
	standby, err := sqltest.LaunchStandby(primary, "fsync=on", "full_page_writes=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Close)
	db := on.handle(t)
	connected := func() int64 { return on.number(t, db, "", `SELECT count(*) FROM pg_stat_replication`) }
	eventually.True(t, "the standby is connected", func() bool { return connected() == 1 })

	addresses := *primary
	addresses.Addr += "," + standby.Addr
	s := postgres.at(&addresses).open(t, schema, sqlstore.Options{}, "connect_timeout=2", "target_session_attrs=read-write")
	if got := s.Caps().Class; got != store.Efficiency {
		t.Errorf("class %v with an asynchronous standby, want %v", got, store.Efficiency)
	}
	there := postgres.at(standby).handle(t)
	for _, query := range []string{`ALTER SYSTEM SET primary_conninfo = ''`, `SELECT pg_reload_conf()`} {
		postgres.exec(t, there, "", query)
	}
	eventually.True(t, "the standby is cut off", func() bool { return connected() == 0 })
	mustRelease(t, s, known)
	late := lease("x")
	mustAcquire(t, s, late)

	primary.Kill()
	postgres.exec(t, there, "", `SELECT pg_promote()`)
	eventually.True(t, "the holder is notified that its lease is lost", func() bool {
		return errors.Is(s.Renew(t.Context(), []store.Lease{late})[0], store.ErrNotHeld)
	})
	if st := inspect(t, s, "x"); st.Holder.Owner != known.Owner || st.Token != first.Token {
		t.Errorf("inspect after the failover: %+v, want the holder of then, %s, with token %v", st, known.Owner, first.Token)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: known}); err != nil {
		t.Fatal(err)
	}
	next := lease("x")
	mustAcquire(t, s, next)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: late}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release of a lease that was lost: %v, want %v", err, store.ErrNotHeld)
	}
	if st := inspect(t, s, "x"); st.Holder.Owner != next.Owner {
		t.Errorf("inspect: %+v, want the holder %s", st, next.Owner)
	}
}
