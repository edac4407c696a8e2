// Package redistest gives tests real redis-server processes that end with the
// test. It is test equipment: only test files import it.
//
// Tests call Start or StartN. TestMain and helper processes, which have no testing.TB, call
// Launch and Close.
//
// On Linux the kernel kills a server when the process that started it dies, in
// whatever way. Elsewhere a test binary that is killed, rather than failing,
// leaves its servers running.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/nodemark"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
)

// Goroutine is the function that waits for a running server. A goleak check that
// runs while a server is up excludes it with
// goleak.IgnoreAnyFunction(redistest.Goroutine). It ends with the server.
const Goroutine = child.Goroutine

// patience bounds every wait for a server. It is only used up if something is
// broken.
const patience = 30 * time.Second

// Server is a localredis.Server with methods for tests.
type Server struct{ *localredis.Server }

// The rest is as localredis has it.
type (
	Options    = localredis.Options
	ReplyError = localredis.ReplyError
	None       = localredis.None
)

// Launch starts a server and waits until it answers. The caller must call Close.
func Launch(o Options) (*Server, error) {
	s, err := localredis.Launch(o)
	if errors.Is(err, localredis.ErrNotInstalled) {
		err = fmt.Errorf("%w\nor run \"make test\", which does this where it can", err)
	}
	if err != nil {
		return nil, err
	}
	return &Server{s}, nil
}

// Start launches one server, waits until it answers, and ends it with the
// test. The args are server settings, such as "--requirepass", "x"; later ones
// win over the defaults (loopback only, no persistence).
//
// If anything goes wrong, here or in a method of the Server, the test fails;
// the server's log is shown whenever the test has failed.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartN(t, 1, args...)[0]
}

// StartN is Start for n independent servers with the same settings.
func StartN(t testing.TB, n int, args ...string) []*Server {
	t.Helper()
	servers := launch(t, n, Options{Args: args})
	if n > 1 {
		for _, s := range servers {
			s.Declare()
		}
	}
	return servers
}

// launch launches n servers, and ends them with the test.
func launch(t testing.TB, n int, o Options) []*Server {
	t.Helper()
	servers := make([]*Server, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		// TempDir before Cleanup: the directory must outlive the server.
		o := o
		o.Dir, o.Trouble = t.TempDir(), func(err error) { t.Error(err) }
		wg.Go(func() { servers[i], errs[i] = Launch(o) })
	}
	wg.Wait()
	for _, s := range servers {
		if s == nil {
			continue
		}
		t.Cleanup(func() {
			s.Close()
			if t.Failed() {
				t.Logf("log of the Redis server at %s:\n%s", s.Addr(), s.Log())
			}
		})
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return servers
}

// Mark is the key by which clients know that a server has lost no data.
const Mark = nodemark.Key

// Alone is the key of the note that a server is used alone.
const Alone = "leasehold:alone"

// Declare makes clients trust that the server, as it runs now, has lost no data. StartN calls
// it. It does nothing if the server cannot be written to.
func (s *Server) Declare() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := s.Do(ctx, "INFO", "server")
	if err != nil {
		return
	}
	clock, err := s.Do(ctx, "TIME")
	if err != nil {
		return
	}
	var seconds, micros int64
	fmt.Sscan(localredis.Text(clock), &seconds, &micros)
	for l := range strings.Lines(localredis.Text(v)) {
		if run, ok := strings.CutPrefix(strings.TrimSpace(l), "run_id:"); ok {
			s.Do(ctx, "SET", Mark, nodemark.Trusted(run, seconds*1e6+micros).String())
		}
	}
}

// Text is Do for a server that is up. It returns the reply as text: numbers in
// decimal, "(nil)" for None, one line for each element of an array. It fails the
// test on an error.
func (s *Server) Text(t testing.TB, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	v, err := s.Do(ctx, args...)
	if err != nil {
		t.Fatalf("redistest: %s at %s: %v", strings.Join(args, " "), s.Addr(), err)
	}
	return localredis.Text(v)
}

// Deleted reports whether the server has no such key. It takes the TTL from a key that exists, so
// that a test that waits does not take the end of a TTL for a release.
func (s *Server) Deleted(t testing.TB, key string) bool {
	t.Helper()
	s.Text(t, "PERSIST", key)
	return s.Text(t, "EXISTS", key) == "0"
}

// Keys returns all keys of the server but Mark, sorted.
func (s *Server) Keys(t testing.TB) []string {
	t.Helper()
	all := s.Text(t, "KEYS", "*")
	if all == "" {
		return nil
	}
	keys := slices.DeleteFunc(strings.Split(all, "\n"), func(k string) bool { return k == Mark || k == Alone })
	slices.Sort(keys)
	return keys
}
