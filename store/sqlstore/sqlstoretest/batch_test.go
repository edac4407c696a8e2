package sqlstoretest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// busyStore is a store in which requests are under way, so that all further ones for mutexes, and
// releases, go to the server in batches.
type busyStore struct {
	*sqlstore.Store
	cancel context.CancelFunc
	tx     *sql.Tx
	all    sync.WaitGroup
}

// plainStore is a busy store in which no lock is new, so that batches leave fewer steps.
type plainStore struct {
	*busyStore
	add func(name string)
}

// Acquire implements store.Store.
func (s *plainStore) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	s.add(r.Name)
	return s.busyStore.Acquire(ctx, r)
}

// keepBusy makes requests for locks whose rows a transaction has locked.
func keepBusy(t testing.TB, on *bed, schema string, s *sqlstore.Store) *busyStore {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b := &busyStore{Store: s, cancel: cancel}
	db := on.handle(t)
	names := []string{"busy " + store.NewOwner(), "busy " + store.NewOwner(), "busy " + store.NewOwner(), "busy " + store.NewOwner()}
	for _, name := range names {
		on.exec(t, db, schema, `INSERT INTO S.locks (name, token) VALUES (?, 0)`, []byte(name))
	}
	var err error
	if b.tx, err = db.BeginTx(ctx, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := b.tx.ExecContext(ctx, on.in(schema, `SELECT FROM S.locks WHERE name = ? FOR UPDATE`), []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	var pid int
	if err := b.tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b.all.Go(func() {
			for ctx.Err() == nil {
				l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: time.Second}
				s.Acquire(ctx, store.AcquireRequest{Lease: l})
			}
		})
	}
	eventually.True(t, "the requests wait", func() bool {
		// The requests of a store that was closed just now may still wait.
		return on.number(t, db, schema, `SELECT count(*) FROM pg_stat_activity WHERE ? = ANY (pg_blocking_pids(pid))`, pid) == int64(len(names))
	})
	t.Cleanup(func() { b.Close() })
	return b
}

// Close implements store.Store.
func (b *busyStore) Close() error {
	b.cancel()
	b.tx.Rollback()
	b.all.Wait()
	return b.Store.Close()
}

// A store that sends batches conforms.
func TestBatchesConform(t *testing.T) {
	t.Parallel()
	for _, c := range []condition{
		{name: "defaults"},
		{name: "serializable", settings: []string{postgres.level("SERIALIZABLE")}},
		{name: "simple protocol", settings: []string{"default_query_exec_mode=simple_protocol"}},
	} {
		c.o.Timeout = patience
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			schema := postgres.newSchema(t)
			one := func(t *testing.T) store.Store {
				db := postgres.handle(t)
				return &plainStore{keepBusy(t, postgres, schema, postgres.open(t, schema, c.o, c.settings...)), func(name string) {
					db.Exec(postgres.in(schema, `INSERT INTO S.locks (name, token) VALUES (?, 0) ON CONFLICT DO NOTHING`), []byte(name))
				}}
			}
			storetest.Run(t, one, storetest.Options{Second: one})
		})
	}
}

// counter connects by another driver, and counts the calls of batch and of ask.
type counter struct {
	forgetful
	batches, asks atomic.Int64
}

func (c *counter) Connect(ctx context.Context) (driver.Conn, error) {
	one, err := c.forgetful.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countedConn{one.(*forgetfulConn), c}, nil
}

type countedConn struct {
	*forgetfulConn
	c *counter
}

// QueryContext implements driver.QueryerContext.
func (c *countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	switch {
	case strings.Contains(query, ".batch("):
		c.c.batches.Add(1)
	case strings.Contains(query, ".ask("):
		c.c.asks.Add(1)
	}
	return c.forgetfulConn.QueryContext(ctx, query, args)
}

// counted opens a store whose calls are counted.
func counted(t *testing.T, schema string) (*sqlstore.Store, *counter) {
	t.Helper()
	c := &counter{forgetful: forgetful{dsn: postgres.dsn(), driver: postgres.handle(t).Driver()}}
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(40)
	t.Cleanup(func() { db.Close() })
	s, err := sqlstore.New(t.Context(), db, sqlstore.PostgreSQL, &sqlstore.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, c
}

// A busy process makes far fewer calls than steps. A goroutine that is alone makes one call for each
// step, and no batches.
func TestBusyProcessesSendBatches(t *testing.T) {
	t.Parallel()
	s, c := counted(t, postgres.newSchema(t))
	for range 10 {
		l := lease("x")
		mustAcquire(t, s, l)
		mustRelease(t, s, l)
	}
	if n := c.batches.Load(); n != 0 {
		t.Errorf("a goroutine that is alone sends %d batches, want none", n)
	}
	const goroutines, turns = 16, 50
	take := func(turns int) {
		var all sync.WaitGroup
		for i := range goroutines {
			all.Go(func() {
				for range turns {
					l := lease(fmt.Sprint("lock ", i))
					if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
						t.Error(err)
						return
					}
					if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	take(1) // requests for locks that are new are made alone
	c.batches.Store(0)
	c.asks.Store(0)
	take(turns)
	batches, asks := c.batches.Load(), c.asks.Load()
	if batches == 0 || batches > goroutines*turns || asks > goroutines*turns/2 {
		t.Errorf("%d batches and %d requests alone for %d requests and as many releases, want fewer", batches, asks, goroutines*turns)
	}
	t.Logf("%d batches and %d requests alone for %d requests and as many releases", batches, asks, goroutines*turns)
}

// busyCounted is counted for a store that sends all steps in batches.
func busyCounted(t *testing.T) (*busyStore, *counter, string) {
	t.Helper()
	schema := postgres.newSchema(t)
	s, c := counted(t, schema)
	b := keepBusy(t, postgres, schema, s)
	for _, name := range []string{"x", "y", "z"} { // from now on they are not new
		mustGet(t, s, name)
	}
	postgres.exec(t, postgres.handle(t), schema, `UPDATE S.locks SET waited = 0 WHERE name IN ('x', 'y', 'z')`)
	return b, c, schema
}

// Neither a transaction that relies on a lease nor one that has locked a row delays the steps that are
// in a batch with the lock.
func TestBatchesPassOverLockedRows(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	s := postgres.open(t, schema, sqlstore.Options{})
	db := postgres.handle(t)
	held, free := lease("held"), lease("free")
	mustAcquire(t, s, held)
	mustAcquire(t, s, free)
	mustAcquire(t, s, lease("other"))
	mustGet(t, s, "locked")
	postgres.exec(t, db, schema, `UPDATE S.locks SET waited = 0`)
	holder := begin(t, db, sql.LevelDefault)
	if err := s.Hold(t.Context(), holder, aLease{Lease: held}); err != nil {
		t.Fatal(err)
	}
	locker := begin(t, db, sql.LevelDefault)
	if _, err := locker.ExecContext(t.Context(), postgres.in(schema, `SELECT FROM S.locks WHERE name = 'locked' FOR UPDATE`)); err != nil {
		t.Fatal(err)
	}
	p := &procedures{on: postgres, db: postgres.handle(t, "lock_timeout=1", postgres.direct[0]), schema: schema}
	got, err := p.batch([]batchStep{
		{lock: "held", owner: held.Owner, release: true},
		{lock: "free", owner: free.Owner, release: true},
		{lock: "held", owner: "o", ttl: time.Minute},
		{lock: "locked", owner: "o", ttl: time.Minute},
		{lock: "other", owner: "o", ttl: time.Minute},
	})
	if err != nil {
		t.Fatalf("a batch with rows that others have locked: %v, want no wait", err)
	}
	for i, want := range []string{"", "released", "busy", "", "busy"} {
		if got[i].verdict != want {
			t.Errorf("step %d: %+v, want verdict %q", i+1, got[i], want)
		}
	}
	if st := inspect(t, s, "held"); st.Holder.Owner != held.Owner {
		t.Errorf("inspect the lock that a transaction relies on: %+v, want the holder %s", st, held.Owner)
	}
}

// A step that has to wait for a row does so alone, and the steps of others go on.
func TestStepsGoOnBesideAHold(t *testing.T) {
	t.Parallel()
	b, _, _ := busyCounted(t)
	held := lease("x")
	mustAcquire(t, b.Store, held)
	tx := begin(t, postgres.handle(t), sql.LevelDefault)
	if err := b.Hold(t.Context(), tx, aLease{Lease: held}); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() { released <- b.Release(t.Context(), store.ReleaseRequest{Lease: held}) }()
	for range 20 {
		l := lease("y")
		mustAcquire(t, b.Store, l)
		mustRelease(t, b.Store, l)
		select {
		case err := <-released:
			t.Fatalf("the release of a lease on which a transaction relies: %v, want it to wait", err)
		default:
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}

// Batches of the same locks in other orders do not wait for each other, and so have no deadlock.
func TestBatchesHaveNoDeadlock(t *testing.T) {
	t.Parallel()
	p := newProcedures(t, postgres, nil)
	if err := p.do(`UPDATE S.time SET us = 1000000000`); err != nil {
		t.Fatal(err)
	}
	const locks = 12
	for i := range locks {
		if err := p.do(`INSERT INTO S.locks (name, token) VALUES (?, 0)`, []byte(fmt.Sprint("lock ", i))); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	var granted atomic.Int64
	for one := range 4 {
		own := &procedures{on: postgres, db: postgres.handle(t, postgres.direct...), schema: p.schema}
		all.Go(func() {
			for range 150 {
				var asks, releases []batchStep
				for i := range locks {
					if one%2 == 1 {
						i = locks - 1 - i
					}
					s := batchStep{lock: fmt.Sprint("lock ", i), owner: fmt.Sprint("owner ", one), ttl: time.Minute}
					asks = append(asks, s)
					s.release = true
					releases = append(releases, s)
				}
				for _, steps := range [][]batchStep{asks, releases} {
					got, err := own.batch(steps)
					if err != nil {
						t.Error(err)
						return
					}
					for _, r := range got {
						if r.verdict == "granted" {
							granted.Add(1)
						}
					}
				}
				if err := own.do(`UPDATE S.time SET us = us + 1`); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	if granted.Load() == 0 {
		t.Error("nothing was granted, so the test shows nothing")
	}
}

// A step that fails in the server does not fail the others: all are made alone.
func TestStepThatFailsInABatch(t *testing.T) {
	t.Parallel()
	b, c, schema := busyCounted(t)
	for _, query := range []string{
		`CREATE FUNCTION S.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.name = 'x' THEN RAISE 'this one fails'; END IF;
			RETURN NEW;
		END $$`,
		`CREATE TRIGGER fail BEFORE UPDATE ON S.locks FOR EACH ROW EXECUTE FUNCTION S.fail()`,
	} {
		asSuperuser(t, strings.ReplaceAll(query, "S.", schema+"."))
	}
	c.batches.Store(0)
	var all sync.WaitGroup
	for _, name := range []string{"x", "y", "z"} {
		all.Go(func() {
			_, err := b.Acquire(t.Context(), store.AcquireRequest{Lease: lease(name)})
			switch {
			case name != "x" && err != nil:
				t.Errorf("acquire %s: %v, want success", name, err)
			case name == "x" && (err == nil || errors.Is(err, store.ErrAmbiguous) || !strings.Contains(err.Error(), "this one fails")):
				t.Errorf("acquire x: %v, want the error of the server, and that nothing was done", err)
			}
		})
	}
	all.Wait()
	if c.batches.Load() == 0 {
		t.Error("no batch was sent, so the test shows nothing")
	}
}

// A caller whose context ends while its batch is under way learns that its step may have been made, and
// leaves no lease. The steps of others are not disturbed.
func TestCallerLeavesABatch(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	proxy := faultproxy.New(t, postgres.server.Addr)
	other := postgres.open(t, schema, sqlstore.Options{})
	b := keepBusy(t, postgres, schema, postgres.through(proxy).open(t, schema, sqlstore.Options{Timeout: patience}, postgres.readable...))
	for _, name := range []string{"x", "y"} { // so that there is a connection, and the locks are known
		l := lease(name)
		mustAcquire(t, b.Store, l)
		mustRelease(t, b.Store, l)
	}
	proxy.HoldReplies()
	ctx, cancel := context.WithCancel(t.Context())
	left, kept := lease("x"), lease("y")
	results := make(chan error, 2)
	go func() {
		_, err := b.Acquire(ctx, store.AcquireRequest{Lease: left})
		results <- err
	}()
	eventually.True(t, "the batch is made", func() bool { return inspect(t, other, "x").Holder.Owner == left.Owner })
	stays := make(chan error, 1)
	go func() {
		_, err := b.Acquire(t.Context(), store.AcquireRequest{Lease: kept})
		stays <- err
	}()
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("acquire whose context ends: %v, want %v", err, context.Canceled)
	}
	proxy.Pass()
	if err := <-stays; err != nil {
		t.Errorf("acquire beside one whose context ended: %v", err)
	}
	eventually.True(t, "the owner is refused", func() bool {
		_, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: left})
		return errors.Is(err, store.ErrNotHeld)
	})
	mustAcquire(t, other, lease("x"))
	if st := inspect(t, other, "y"); st.Holder.Owner != kept.Owner {
		t.Errorf("inspect the other lock: %+v, want the holder %s", st, kept.Owner)
	}
}

// The steps of a batch whose answer is lost may have been made. An acquire leaves no lease, and its owner is
// refused from then on. A release can be repeated.
func TestLostAnswerToABatch(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	other := postgres.open(t, schema, sqlstore.Options{})
	proxy := faultproxy.New(t, postgres.server.Addr)
	b := keepBusy(t, postgres, schema, postgres.through(proxy).open(t, schema, sqlstore.Options{Timeout: patience}, postgres.readable...))
	for _, name := range []string{"x", "y"} {
		l := lease(name)
		mustAcquire(t, b.Store, l)
		mustRelease(t, b.Store, l)
	}
	l, lost := lease("x"), lease("y")
	mustAcquire(t, b.Store, l)
	proxy.CutReplyTo(".batch(", 0)
	if err := b.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("release whose answer is lost: %v, want an error that matches store.ErrAmbiguous", err)
	}
	if err := b.Release(t.Context(), store.ReleaseRequest{Lease: l}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release again: %v, want %v", err, store.ErrNotHeld)
	}
	proxy.CutReplyTo(".batch(", 0)
	if _, err := b.Acquire(t.Context(), store.AcquireRequest{Lease: lost}); !errors.Is(err, store.ErrAmbiguous) {
		t.Errorf("acquire whose answer is lost: %v, want an error that matches store.ErrAmbiguous", err)
	}
	eventually.True(t, "the owner is refused", func() bool {
		_, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: lost})
		return errors.Is(err, store.ErrNotHeld)
	})
	mustAcquire(t, other, lease("x"))
	mustAcquire(t, other, lease("y"))
}

// A driver may say ErrBadConn of a batch that the server has made. Its steps are made again, and what the
// batch did is not taken for the work of another client.
func TestBadConnectionAfterABatch(t *testing.T) {
	t.Parallel()
	b, c, _ := busyCounted(t)
	call := ".batch("
	l := lease("x")
	c.forgets.Store(&call)
	mustAcquire(t, b.Store, l)
	if c.forgets.Load() != nil {
		t.Fatal("no answer to a batch was forgotten")
	}
	c.forgets.Store(&call)
	mustRelease(t, b.Store, l)
	if c.forgets.Load() != nil {
		t.Fatal("no answer to a batch was forgotten")
	}
	if err := b.Release(t.Context(), store.ReleaseRequest{Lease: lease("x")}); !errors.Is(err, store.ErrNotHeld) {
		t.Errorf("release of what is not held: %v", err)
	}
}

// tries is a contest that asks for locks without waiting, so that its steps go in batches.
type tries struct {
	locks [4]contest
}

func (c *tries) run(ctx context.Context, s *sqlstore.Store, ttl time.Duration) {
	for n := 0; ctx.Err() == nil; n++ {
		i := n % len(c.locks)
		c.locks[i].try(ctx, s, fmt.Sprint("lock ", i), ttl)
	}
}

// try makes one attempt of a contest.
func (c *contest) try(ctx context.Context, s *sqlstore.Store, name string, ttl time.Duration) {
	l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl, Require: s.Caps().Class}
	start := clock.System().Now()
	g, err := s.Acquire(ctx, store.AcquireRequest{Lease: l})
	if err != nil {
		return
	}
	c.mu.Lock()
	now, end := clock.System().Now(), validity.Until(start, ttl)
	valid := now < end
	if valid {
		if now < c.until {
			c.wrong = append(c.wrong, "two leases are valid")
		}
		if g.Token <= c.token {
			c.wrong = append(c.wrong, "a token went back")
		}
		c.until, c.token = end, g.Token
		c.grants++
	}
	c.mu.Unlock()
	c.mu.Lock()
	if valid && c.token == g.Token {
		c.until = 0
	}
	c.mu.Unlock()
	s.Release(context.WithoutCancel(ctx), store.ReleaseRequest{Lease: l})
}

func (c *tries) count() (n int) {
	for i := range c.locks {
		n += c.locks[i].count()
	}
	return n
}

func (c *tries) verdict(t *testing.T) {
	t.Helper()
	for i := range c.locks {
		c.locks[i].verdict(t, 1)
	}
}

// With connections killed while batches are under way, each lock has one holder at a time, and can be
// acquired in the end.
func TestConnectionsKilledDuringBatches(t *testing.T) {
	t.Parallel()
	_, schema := postgres.newStore(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var c tries
	var all sync.WaitGroup
	for range 2 {
		s := postgres.open(t, schema, sqlstore.Options{}, postgres.named(schema))
		for range 16 {
			all.Go(func() { c.run(ctx, s, 2*time.Second) })
		}
	}
	db := postgres.handle(t)
	const kills, grants = 100, 200
	for n := 0; ctx.Err() == nil && (n < kills || c.count() < grants); n++ {
		if err := postgres.kill(db, schema); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
	c.verdict(t)
	s := postgres.open(t, schema, sqlstore.Options{})
	for i := range c.locks {
		mustGet(t, s, fmt.Sprint("lock ", i))
	}
}

// A server that is killed while batches are under way and started again keeps what it has granted.
func TestServerKilledDuringBatches(t *testing.T) {
	t.Parallel()
	server, err := postgres.launch(postgres.durable...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	own := postgres.at(server)
	schema := own.newSchema(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var c tries
	var all sync.WaitGroup
	for range 2 {
		s := own.open(t, schema, sqlstore.Options{})
		for range 16 {
			all.Go(func() { c.run(ctx, s, 3*time.Second) })
		}
	}
	passed := func() {
		before := c.count()
		eventually.True(t, "the locks are passed round", func() bool { return c.count() > before+40 })
	}
	for range 3 {
		passed()
		server.Kill()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	passed()
	stop()
	all.Wait()
	c.verdict(t)
}

// A batch that the server ends because of statement_timeout does nothing, and its steps are made alone.
func TestStatementTimeoutInABatch(t *testing.T) {
	t.Parallel()
	schema := postgres.newSchema(t)
	b := keepBusy(t, postgres, schema, postgres.open(t, schema, sqlstore.Options{}, "statement_timeout=1000"))
	l := lease("x")
	mustAcquire(t, b.Store, l)
	mustRelease(t, b.Store, l)
	asSuperuser(t, strings.ReplaceAll(`CREATE FUNCTION S.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF pg_catalog.current_query() LIKE '%.batch(%' THEN PERFORM pg_catalog.pg_sleep(60); END IF;
		RETURN NEW;
	END $$`, "S.", schema+"."))
	asSuperuser(t, strings.ReplaceAll(`CREATE TRIGGER slow BEFORE UPDATE ON S.locks FOR EACH ROW EXECUTE FUNCTION S.slow()`, "S.", schema+"."))
	mustAcquire(t, b.Store, lease("x"))
}
