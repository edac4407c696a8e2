package sqlstoretest

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/sqlstore"
)

// serverClock is the wall clock of servers: libfaketime gives it to them.
type serverClock struct{ file string }

// newServerClock returns a clock for the servers that launch starts. Other servers must
// not be started meanwhile.
func newServerClock(t *testing.T, launch func()) serverClock {
	t.Helper()
	var library string
	for _, pattern := range []string{"/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/lib64/faketime"} {
		if found, _ := filepath.Glob(pattern + "/libfaketime.so.1"); len(found) > 0 {
			library = found[0]
		}
	}
	if library == "" {
		t.Fatal("libfaketime is not installed, and this test sets the clock of servers with it: apt-get install faketime")
	}
	dir, err := os.MkdirTemp("", "clock-") // that servers of other users can read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := serverClock{filepath.Join(dir, "clock")}
	c.set(t, "+0s")
	for name, value := range map[string]string{
		"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": c.file, "FAKETIME_NO_CACHE": "1", "DONT_FAKE_MONOTONIC": "1",
	} {
		if err := os.Setenv(name, value); err != nil {
			t.Fatal(err)
		}
		defer os.Unsetenv(name)
	}
	launch()
	return c
}

// set sets the clock ahead of that of this process, as in "+3600s", or back.
func (c serverClock) set(t *testing.T, offset string) {
	t.Helper()
	next := c.file + ".next"
	if err := os.WriteFile(next, []byte(offset+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, c.file); err != nil {
		t.Fatal(err)
	}
}

// The clock of the servers themselves is set. A process that notices that it was set ahead grants
// nothing until the longest lease is over. Set back, it makes no token go back, and a lease can be
// renewed and released.
func TestServerClockIsSet(t *testing.T) {
	servers := make([]*sqltest.Server, len(beds))
	clock := newServerClock(t, func() {
		var starting sync.WaitGroup
		for i, on := range beds {
			starting.Go(func() {
				var err error
				if servers[i], err = on.launch(on.quick...); err != nil {
					t.Error(err)
				}
			})
		}
		starting.Wait()
	})
	for _, server := range servers {
		if server != nil {
			t.Cleanup(server.Close)
		}
	}
	if t.Failed() {
		return
	}
	t.Parallel()

	const longest = 2 * time.Second
	short := func() store.Lease {
		l := lease("x")
		l.TTL = longest
		return l
	}
	stores := make([]*sqlstore.Store, len(beds))
	tokens := make([]store.Grant, len(beds))
	others := make([]*sqlstore.Store, len(beds)) // do not know of a TTL that the tables have
	for i, on := range beds {
		own := on.at(servers[i])
		stores[i] = own.open(t, own.newSchema(t), sqlstore.Options{MaxTTL: longest})
		mustAcquire(t, stores[i], short())
		schema := own.newSchema(t)
		others[i] = own.open(t, schema, sqlstore.Options{})
		long := lease("long")
		long.TTL = 10 * time.Minute
		mustAcquire(t, own.open(t, schema, sqlstore.Options{}), long)
	}
	each := func(what string, do func(t *testing.T, i int, s *sqlstore.Store)) {
		t.Run(what, func(t *testing.T) {
			for i, on := range beds {
				t.Run(on.name, func(t *testing.T) {
					t.Parallel()
					do(t, i, stores[i])
				})
			}
		})
	}
	clock.set(t, "+3600s")
	each("ahead", func(t *testing.T, i int, s *sqlstore.Store) {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: short()})
		var q *store.QuorumError
		if !errors.As(err, &q) || q.Count(store.Quarantined) != 1 {
			t.Fatalf("acquire after the clock was set ahead: %v, want a quarantine", err)
		}
		eventually.True(t, "a lease that was not granted is released", func() bool { return !inspect(t, s, "x").Held })
		w := wait(t, s, short())
		tokens[i] = w.granted(t)
		mustRelease(t, s, w.r.Lease)
	})
	each("ahead of a long lease", func(t *testing.T, i int, _ *sqlstore.Store) {
		eventually.True(t, "a client that reads the longest TTL grants nothing for as long", func() bool {
			_, err := others[i].Acquire(t.Context(), store.AcquireRequest{Lease: short()})
			var q *store.QuorumError
			if errors.Is(err, store.ErrBusy) {
				return false // what was not granted the last time is being released
			}
			if !errors.As(err, &q) {
				t.Fatalf("acquire after the clock was set ahead: %v, want a quarantine", err)
			}
			left, _ := q.OpensIn()
			return left > 9*time.Minute
		})
	})
	clock.set(t, "-3600s")
	each("back", func(t *testing.T, i int, s *sqlstore.Store) {
		l := short()
		w := wait(t, s, l) // beyond a quarantine, if there is one
		if g := w.granted(t); g.Token <= tokens[i].Token {
			t.Errorf("token %v after the clock was set back, want a larger one than %v", g.Token, tokens[i].Token)
		}
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Errorf("renew: %v", err)
		}
		mustRelease(t, s, l)
	})
}
