// Package redistest starts real redis-server processes for tests, each on a
// free loopback port and in a directory of its own, and ends them. It is test
// equipment: only test files import it.
//
// In a test, Start and StartN are all there is to call; the servers end with
// the test. TestMain and helper processes, which have no testing.TB, use
// Launch and Close.
//
// On Linux the kernel kills a server when the process that started it dies, in
// whatever way. Elsewhere a test binary that is killed, rather than failing,
// leaves its servers running.
package redistest

import (
	"errors"
	"sync"
	"testing"
)

// Goroutine is the function that waits for a running server. A goleak check
// that runs while a server is still up excludes it with
// goleak.IgnoreAnyFunction(redistest.Goroutine). It is gone when the server is.
const Goroutine = "github.com/leasehold-dev/leasehold/internal/redistest.(*process).run"

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
	servers := make([]*Server, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		// TempDir before Cleanup: the directory must outlive the server.
		dir := t.TempDir()
		wg.Go(func() { servers[i], errs[i] = Launch(Options{Dir: dir, Args: args}) })
	}
	wg.Wait()
	for _, s := range servers {
		if s == nil {
			continue
		}
		s.report = t
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
