package sqlstoretest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// contest makes goroutines contend for one lock until it is stopped, and checks that valid leases do
// not overlap and that tokens rise.
type contest struct {
	mu     sync.Mutex
	until  clock.Instant // the end of the validity of the last lease, unless it was released
	token  fence.Token
	grants int
	wrong  []string
}

func (c *contest) run(ctx context.Context, s *store.Store, name string, ttl time.Duration) {
	for ctx.Err() == nil {
		l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl, Require: s.Caps().Class}
		start := clock.System().Now()
		g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		if err != nil {
			continue
		}
		c.mu.Lock()
		now, end := clock.System().Now(), validity.Until(start.Add(g.Since), ttl)
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
		time.Sleep(rand.N(2 * time.Millisecond))
		c.mu.Lock()
		if valid && c.token == g.Token {
			c.until = 0
		}
		c.mu.Unlock()
		s.Release(context.WithoutCancel(ctx), store.ReleaseRequest{Lease: g.Lease})
	}
}

func (c *contest) verdict(t *testing.T, least int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		t.Errorf("%d violations, the first: %s", len(c.wrong), c.wrong[0])
	}
	if c.grants < least {
		t.Errorf("%d grants, want at least %d", c.grants, least)
	}
	t.Logf("%d grants", c.grants)
}

// With connections killed at any moment, the lock has one holder at a time, and can be acquired in
// the end.
func TestConnectionsKilledAtAnyMoment(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		_, schema := on.newStore(t)
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
		defer stop()
		const kills, grants = 200, 10
		var c contest
		var all sync.WaitGroup
		for range 6 {
			s := on.open(t, schema, sqlstore.Options{}, on.named(schema))
			all.Go(func() { c.run(ctx, s, "x", 2*time.Second) })
		}
		db := on.handle(t)
		for n := 0; ctx.Err() == nil && (n < kills || c.count() < grants); n++ {
			if err := on.kill(db, schema); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(10 * time.Millisecond))
		}
		stop()
		all.Wait()
		c.verdict(t, grants)
		mustGet(t, on.open(t, schema, sqlstore.Options{}), "x")
	})
}

// A server that is killed and started again, with its commits on disk, keeps its
// leases.
func TestServerKilled(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		server, err := on.launch(on.durable...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Close)
		own := on.at(server)
		schema := own.newSchema(t)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var c contest
		var all sync.WaitGroup
		for range 4 {
			s := own.open(t, schema, sqlstore.Options{})
			if got := s.Caps().Class; got != store.CrashSafe {
				t.Errorf("class %v on a server that syncs its disk, want %v", got, store.CrashSafe)
			}
			all.Go(func() { c.run(ctx, s, "x", 3*time.Second) })
		}
		s := own.open(t, schema, sqlstore.Options{})
		kept := store.Lease{Name: "kept", Owner: store.NewOwner(), TTL: time.Minute, Require: store.CrashSafe}
		mustAcquire(t, s, kept)
		for range 3 {
			before := c.count()
			eventually.True(t, "the lock is passed round", func() bool { return c.count() > before+10 })
			server.Kill()
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		before := c.count()
		eventually.True(t, "the lock is passed round after the last crash", func() bool { return c.count() > before+10 })
		stop()
		all.Wait()
		c.verdict(t, 30)
		if st := inspect(t, s, "kept"); st.Holder.Owner != kept.Owner {
			t.Errorf("inspect a lease from before the crashes: %+v, want the holder %s", st, kept.Owner)
		}
		mustGet(t, s, "x")
	})
}

// With default options, a grant, a hand-off and a renewal survive a kill of a PostgreSQL
// server as its other commits do, also if they come right after a release, which need not.
func TestServerKilledAfterAGrant(t *testing.T) {
	t.Parallel()
	// What a commit leaves in memory is not written before the server is killed.
	server, err := postgres.launch(append(postgres.durable, "wal_writer_delay=10s")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	on := postgres.at(server)
	schema := on.newSchema(t)
	s := on.open(t, schema, sqlstore.Options{})
	semaphore := func(name string) store.Lease { return leaseOf(store.Semaphore(1), 1, name) }
	handOff := func(made func(string) store.Lease) func(string) store.Lease {
		return func(name string) store.Lease {
			first, next := made(name), made(name)
			mustAcquire(t, s, first)
			w := wait(t, s, next)
			eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, name).Queue) == 1 })
			mustRelease(t, s, first)
			w.granted(t)
			return next
		}
	}
	acquire := func(made func(string) store.Lease) func(string) store.Lease {
		return func(name string) store.Lease {
			l := made(name)
			mustAcquire(t, s, l)
			return l
		}
	}
	for name, step := range map[string]func(name string) store.Lease{
		"grant":                 acquire(lease),
		"hand-off":              handOff(lease),
		"grant of a permit":     acquire(semaphore),
		"hand-off of a permit":  handOff(semaphore),
		"grants with a release": func(name string) store.Lease { return together(t, s, name) },
		"renewal":               func(name string) store.Lease { return renewed(t, s, lease(name)) },
		"renewal of a permit":   func(name string) store.Lease { return renewed(t, s, semaphore(name)) },
		"end":                   func(name string) store.Lease { return afterAnEnd(t, s, lease(name), lease(name)) },
		"end of a permit":       func(name string) store.Lease { return afterAnEnd(t, s, semaphore(name), semaphore(name)) },
	} {
		l := step(name)
		server.Kill()
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		s = on.open(t, schema, sqlstore.Options{})
		st := inspect(t, s, name)
		if st.Holder.Owner != l.Owner || st.ExpiresIn <= 0 {
			t.Errorf("%s: after a kill the holder is %+v, want %s", name, st.Holder, l.Owner)
		}
		if strings.HasPrefix(name, "renewal") && st.ExpiresIn < 20*time.Second {
			t.Errorf("%s: after a kill the lease lasts %v, want it renewed", name, st.ExpiresIn)
		}
	}
}

// renewed returns a lease that was acquired for a short time and renewed for a long one.
func renewed(t *testing.T, s *store.Store, l store.Lease) store.Lease {
	l.TTL = 10 * time.Second
	mustAcquire(t, s, l)
	l.TTL = time.Minute
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
		t.Fatal(err)
	}
	return l
}

// together returns a lease that was acquired while others were acquired and released.
func together(t *testing.T, s *store.Store, name string) store.Lease {
	l := lease(name)
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			other := lease(fmt.Sprint("other ", n))
			mustAcquire(t, s, other)
			mustRelease(t, s, other)
			if n == 15 {
				mustAcquire(t, s, l)
			}
		})
	}
	all.Wait()
	return l
}

// afterAnEnd returns a lease that a waiter found handed to it when the one before it ended.
func afterAnEnd(t *testing.T, s *store.Store, first, next store.Lease) store.Lease {
	first.TTL = time.Second
	mustAcquire(t, s, first)
	wait(t, s, next).granted(t)
	return next
}

func (c *contest) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.grants
}

// Behind a pooler that gives transactions to any session, waiters poll, and the store
// conforms in all else.
func TestBehindAPooler(t *testing.T) {
	t.Parallel()
	pooler, err := sqltest.LaunchPgBouncer(postgres.server, 5)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pooler.Close)
	schema := postgres.newSchema(t)
	var log logged
	behind := postgres.at(pooler)
	s := behind.open(t, schema, sqlstore.Options{Logger: log.logger()}, "default_query_exec_mode=simple_protocol")
	other := behind.open(t, schema, sqlstore.Options{}, "default_query_exec_mode=simple_protocol")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	const grants = 10
	var c contest
	var all sync.WaitGroup
	for _, one := range []*store.Store{s, other, s, other} {
		all.Go(func() { c.run(ctx, one, "x", 5*time.Second) })
	}
	eventually.True(t, "all take turns", func() bool { return c.count() >= grants })
	stop()
	all.Wait()
	c.verdict(t, grants)
	mustGet(t, s, "x")
	l := lease("y")
	mustAcquire(t, s, l)
	w := wait(t, s, lease("y")) // all may have had their turns without a wait
	eventually.True(t, "the log says that waiters poll", func() bool { return strings.Contains(log.String(), "look for locks now and then") })
	mustRelease(t, s, l)
	w.granted(t)
}

// Behind a pooler that allows no transactions of several statements, waiters poll too, and the log
// says why.
func TestBehindAPoolerOfStatements(t *testing.T) {
	t.Parallel()
	pooler, err := sqltest.LaunchPgBouncer(postgres.server, 5, "pool_mode = statement")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pooler.Close)
	schema := postgres.newSchema(t)
	var log logged
	s := postgres.at(pooler).open(t, schema, sqlstore.Options{Logger: log.logger()}, "default_query_exec_mode=simple_protocol")
	l := lease("x")
	mustAcquire(t, s, l)
	w := wait(t, s, lease("x"))
	eventually.True(t, "the log says that waiters poll", func() bool { return strings.Contains(log.String(), "look for locks now and then") })
	eventually.True(t, "the waiter has its place", func() bool { return len(inspect(t, s, "x").Queue) == 1 })
	mustRelease(t, s, l)
	w.granted(t)
}

// The error of a read-only server says that it is one.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	t.Run(postgres.name, func(t *testing.T) {
		t.Parallel()
		schema := postgres.newSchema(t)
		asSuperuser(t, `CREATE ROLE `+schema+` LOGIN PASSWORD 'p' SUPERUSER`)
		u := *postgres.server
		u.User, u.Password = schema, "p"
		s := postgres.at(&u).open(t, schema, sqlstore.Options{Timeout: 5 * time.Second}) // a refused call is repeated for so long
		asSuperuser(t, `ALTER ROLE `+schema+` SET default_transaction_read_only = on`)
		asSuperuser(t, `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE usename = $1`, schema)
		eventually.True(t, "the store has a new connection", func() bool { return refused(t, s, "can only be read") })
	})
	for _, on := range mysqls {
		t.Run(on.name, func(t *testing.T) {
			t.Parallel()
			schema := on.newSchema(t)
			_, err := newBy(t, on.dialect, on.driver, on.dsn(on.readOnly+"=1"), &sqlstore.Options{Schema: schema})
			if err == nil || !strings.Contains(err.Error(), "can only be read") {
				t.Errorf("open with transactions that can only read: %v, want an error that says so", err)
			}
		})
	}
}

// refused reports whether the error of an acquire, which must fail, contains the words.
func refused(t *testing.T, s *store.Store, words string) bool {
	t.Helper()
	_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease("x")})
	if err == nil || errors.Is(err, store.ErrBusy) {
		t.Fatalf("acquire on a read-only server: %v, want an error that says so", err)
	}
	return strings.Contains(err.Error(), words)
}

// No error and no log line contains the password.
func TestNoPasswordInErrors(t *testing.T) {
	everywhere(t, func(t *testing.T, on *bed) {
		t.Parallel()
		wrong := *on.server
		wrong.Password = "secretword"
		_, err := newBy(t, on.dialect, on.driver, on.at(&wrong).dsn(), &sqlstore.Options{Timeout: time.Second})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("open with a wrong password: %v, want an error without the password", err)
		}
	})
}
