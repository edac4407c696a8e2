package sqlstoretest

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// openURL opens a store as a program with only a URL does.
func openURL(t *testing.T, url string) *sqlstore.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*sqlstore.Store)
}

// The calls of a busy process are prepared. It goes on if the procedures are installed again.
func TestCallsArePrepared(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	s := openURL(t, postgres.dsn("schema="+schema, "log_min_duration_statement=0"))
	eventually.True(t, "calls are prepared", func() bool {
		mustGet(t, s, "x")
		return isPrepared(schema, "ask")
	})
	if err := sqlstore.Install(t.Context(), postgres.handle(t), sqlstore.PostgreSQL, schema); err != nil {
		t.Fatal(err)
	}
	mustGet(t, s, "x")
}

// The calls of a process that waits are prepared from its first place in a queue.
func TestCallsOfAWaiterArePrepared(t *testing.T) {
	t.Parallel()
	// On a loaded machine a store may not learn in time that sessions last. The next one may.
	eventually.True(t, "the call that makes the first place of a store is prepared", func() bool {
		other, schema := postgres.newStore(t)
		s := openURL(t, postgres.dsn("schema="+schema, "log_min_duration_statement=0"))
		mustAcquire(t, other, lease("x"))
		wait(t, s, lease("x"))
		eventually.True(t, "the store waits", func() bool { return len(inspect(t, other, "x").Queue) == 1 })
		return isPrepared(schema, "ask")
	})
}

// isPrepared reports whether the server has executed a prepared call of that procedure.
func isPrepared(schema, procedure string) bool {
	for line := range strings.Lines(postgres.server.Log()) {
		if strings.Contains(line, "execute stmt") && strings.Contains(line, schema+"."+procedure+"(") {
			return true
		}
	}
	return false
}

// The calls of a process that queues again with each release, and so never returns its connection to
// the pool, are prepared too.
func TestRejoinsArePrepared(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	one, other := openURL(t, postgres.dsn("schema="+schema, "log_min_duration_statement=0")), postgres.open(t, schema, sqlstore.Options{})
	theirs := lease("x")
	mustAcquire(t, other, theirs)
	mine := wait(t, one, lease("x"))
	queued := func() bool { return len(inspect(t, other, "x").Queue) == 1 }
	eventually.True(t, "the first store waits", queued)
	mustRelease(t, other, theirs)
	mine.granted(t)
	eventually.True(t, "other calls are prepared", func() bool {
		inspect(t, one, "x")
		return isPrepared(schema, "inspect")
	})
	for range 2 {
		next := wait(t, other, lease("x"))
		eventually.True(t, "the other store waits", queued)
		again := store.WaitRequest{Lease: lease("x")}
		if _, err := one.ReleaseAndRejoin(t.Context(), store.ReleaseRequest{Lease: mine.r.Lease}, again); err != nil {
			t.Fatal(err)
		}
		next.granted(t)
		mine = wait(t, one, again.Lease)
		eventually.True(t, "the first store waits again", queued)
		mustRelease(t, other, next.r.Lease)
		mine.granted(t)
	}
	mustRelease(t, one, mine.r.Lease)
	if !isPrepared(schema, "release_and_rejoin") {
		t.Error("the call that releases and queues again is not prepared")
	}
}

// Behind a pooler calls are not prepared, since another session would get them.
func TestCallsAreNotPreparedBehindAPooler(t *testing.T) {
	t.Parallel()
	pooler, err := sqltest.LaunchPgBouncer(postgres.server, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pooler.Close)
	schema := postgres.newSchema(t)
	s := openURL(t, postgres.at(pooler).dsn("schema="+schema))
	for range 100 {
		mustGet(t, s, "x")
	}
}
