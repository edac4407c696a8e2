package sqlstoretest

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/store"
)

// line is a lock with a holder and waiters, each of them a session of PostgreSQL that calls the
// procedures itself.
type line struct {
	schema string
	db     *sql.DB
	signal int64 // of the holder; that of a waiter follows by its number
}

// newLine returns a line whose holder has a signal.
func newLine(t *testing.T) *line {
	l := &line{postgres.newSchema(t), postgres.handle(t), rand.Int64() >> 1}
	holder := l.session(t)
	l.do(t, holder, `SELECT S.ask('x', 'holder', '', '', 3600000000, 0, false, false, false, 0)`)
	l.do(t, holder, fmt.Sprintf(`SELECT S.take_signal('x', 'holder', %d)`, l.signal))
	return l
}

func (l *line) session(t *testing.T) *sql.Conn {
	t.Helper()
	c, err := l.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (l *line) do(t *testing.T, on *sql.Conn, query string) {
	t.Helper()
	if _, err := on.ExecContext(t.Context(), postgres.in(l.schema, query)); err != nil {
		t.Fatal(err)
	}
}

// enter makes a session the last waiter.
func (l *line) enter(t *testing.T, waiter int, ttl time.Duration) *sql.Conn {
	t.Helper()
	c := l.session(t)
	l.do(t, c, fmt.Sprintf(`SELECT S.ask('x', 'waiter %d', '', '', %d, 0, true, false, false, %d)`, waiter, ttl.Microseconds(), l.signal+int64(waiter)))
	return c
}

// far is how long the calls of await may block here: longer than a test waits for anything.
const far = time.Hour

// await has a waiter block in the server. It returns an error if that takes longer than a test
// waits.
func (l *line) await(ctx context.Context, on *sql.Conn, waiter int) (waited bool, at int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query := fmt.Sprintf(`SELECT waited, at FROM S.await('x', 'waiter %d', %d, %[2]d, %d)`, waiter, far.Microseconds(), l.signal+int64(waiter))
	err = on.QueryRowContext(ctx, postgres.in(l.schema, query)).Scan(&waited, &at)
	return waited, at, err
}

// interval is the session's setting that lets it notice the end of its client.
func interval(t *testing.T, on *sql.Conn) (text string) {
	t.Helper()
	if err := on.QueryRowContext(t.Context(), `SHOW client_connection_check_interval`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

const patient = `SET client_connection_check_interval = '900ms'`

// A waiter in a patient session blocks behind another one, and not beyond the end of that one's
// place: if its process stands still, its signal says nothing.
func TestPatientWaiterLooksWhenThePlaceBeforeEnds(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	const ttl = 3 * time.Second
	l.enter(t, 2, ttl)
	third := l.enter(t, 3, far)
	l.do(t, third, patient)
	ends := postgres.number(t, l.db, l.schema, `SELECT ends FROM S.places WHERE owner = 'waiter 2'`)
	waited, at, err := l.await(t.Context(), third, 3)
	if err != nil || !waited || at < ends {
		t.Fatalf("the waiter blocked: %v, until %d, %v, want until the place before it has ended, at %d", waited, at, err, ends)
	}
}

// A call blocks briefly if its session is not patient yet, which it is then, if the server logs
// long waits, and if the lease itself is before the waiter.
func TestCallsThatBlockBriefly(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	first := l.enter(t, 2, far)
	second := l.enter(t, 3, far)
	briefly := func(what string, on *sql.Conn, waiter int) {
		t.Helper()
		if waited, _, err := l.await(t.Context(), on, waiter); err != nil || !waited {
			t.Fatalf("%s: blocked %v, %v, want a call that blocks and returns", what, waited, err)
		}
	}
	l.do(t, second, `SET log_lock_waits = on`)
	briefly("a server that logs long waits", second, 3)
	if got := interval(t, second); got != "0" {
		t.Errorf("the session checks its connection each %s, want never", got)
	}
	l.do(t, second, `SET log_lock_waits = off`)
	briefly("a session that is not patient", second, 3)
	if got := interval(t, second); got != "900ms" {
		t.Errorf("the session checks its connection each %s, want each 900ms", got)
	}
	l.do(t, first, patient)
	briefly("the first waiter", first, 2)
}

// The server notices that the client of a patient waiter is gone, while the waiter blocks. Its
// signal then shows that it is dead, and a release passes over it.
func TestDeadWaiterThatBlocksIsNoticed(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.enter(t, 2, far)
	proxy := faultproxy.New(t, postgres.server.Addr)
	third := (&line{l.schema, postgres.through(proxy).handle(t), l.signal}).enter(t, 3, far)
	l.do(t, third, patient)
	var pid int64
	if err := third.QueryRowContext(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, _, err := l.await(context.Background(), third, 3)
		ended <- err
	}()
	eventually.True(t, "the waiter blocks", func() bool {
		return postgres.number(t, l.db, l.schema, `SELECT count(*) FROM pg_stat_activity WHERE pid = ? AND wait_event = 'advisory'`, pid) == 1
	})
	proxy.RefuseNew() // or the driver would cancel the call
	proxy.Cut()
	if err := <-ended; err == nil {
		t.Fatal("the call of the dead client succeeded")
	}
	eventually.True(t, "the signal of the dead waiter is free", func() bool { return postgres.number(t, l.db, l.schema, postgres.free, l.signal+3) == 1 })
}

// Waiters behind the first one make few calls. They are handed the lock in their turn all the same.
func TestIdleWaitersBlockForLong(t *testing.T) {
	t.Parallel()
	s, schema := postgres.newStore(t)
	db := postgres.handle(t)
	holder := wait(t, s, lease("x"))
	holder.granted(t)
	var waiters []*waiter
	for range 3 {
		waiters = append(waiters, wait(t, s, lease("x")))
		eventually.True(t, "the waiter has its signal", func() bool { return signals(t, postgres, db, schema) == int64(len(waiters)) })
	}
	if err := s.Renew(t.Context(), []store.Lease{holder.r.Lease})[0]; err != nil { // it learns of the waiters
		t.Fatal(err)
	}
	long := `SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE '%' || 'S' || '.await(%' AND clock_timestamp() > query_start + interval '1500 ms'`
	eventually.True(t, "the waiters behind the first one block for long", func() bool { return postgres.number(t, db, schema, long) == 2 })
	for _, w := range append([]*waiter{holder}, waiters...) {
		w.granted(t)
		mustRelease(t, s, w.r.Lease)
	}
}
