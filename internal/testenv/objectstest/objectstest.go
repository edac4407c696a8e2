// Package objectstest has the tests and benchmarks that all stores over servers of objects share. A
// store describes itself as a Kind, and has one test for each method of it.
//
//	objectstest.go  what a store says of itself and its server
//	tests.go        a store on a server
//	faults.go       a store while answers are lost, and servers and processes killed
//	bench.go        what locks cost, beside locks by hand
package objectstest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
)

// Kind is a kind of server, and the store over it.
type Kind struct {
	// Start starts a server with an empty bucket, and ends it with the test. If lasting is set, it
	// can be killed and started again with its objects.
	Start func(t testing.TB, lasting bool) *Server
	// Open opens a store in the bucket of the server at a URL.
	Open func(ctx context.Context, endpoint string, o Options) (*store.Store, error)
	// Examine is what the doctor is told of that server.
	Examine func(ctx context.Context, endpoint string, timeout time.Duration) (Examination, error)
	// ByHand returns what people use who write locks by hand.
	ByHand func(t testing.TB, endpoint string) Hand
	// URL returns what other processes open, and Env is what their environment has.
	URL func(endpoint string) string
	Env []string

	// Method is that of a request that writes an object.
	Method string
	// Fail answers with an error of such a server.
	Fail func(w http.ResponseWriter, e Failure)
	// After errors of Passing the request may succeed, and Slow asks for fewer requests, too. After
	// one of Final the request fails whenever it is made.
	Passing, Slow, Final []Failure
	// Ignore has a server not heed conditions, by what the error says then.
	Ignore map[string]func(w http.ResponseWriter, r *http.Request) bool
	// Page has a list show at most n objects at once, and Behind answers one as if there were none.
	// Both are told of all requests.
	Page   func(r *http.Request, n int)
	Behind func(w http.ResponseWriter, r *http.Request) bool
}

// Options are those of all such stores.
type Options struct {
	Prefix              string
	Skew, Poll, Timeout time.Duration
}

// Examination is what all such stores say of a server.
type Examination struct {
	Node     string
	Class    store.Class
	Unusable error
}

// Failure is the status of an answer, and the server's word for it.
type Failure struct {
	Status int
	Code   string
}

// Hand writes and deletes objects.
type Hand struct {
	// Write replaces a version of an object; if that is empty, it makes the object if there is none.
	Write  func(ctx context.Context, name, version string) (next string, err error)
	Delete func(ctx context.Context, name string) error
}

// Server is a server behind a door.
type Server struct {
	*door.Door
	// Direct is the URL of the server without the door.
	Direct string

	process *child.Process
	start   func()
	took    time.Duration // by start
}

// Inside returns a server that is part of this process.
func Inside(t testing.TB, h http.Handler) *Server {
	d := door.Open(t, h)
	return &Server{Door: d, Direct: d.URL}
}

// Launch starts a server as a process that listens at an address, and ends it with the test. It
// waits until ready returns true for its URL, now and whenever it is started again.
func Launch(t testing.TB, command func(address string) *exec.Cmd, ready func(url string) bool) *Server {
	t.Helper()
	n, err := port.Pick()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Release(n) })
	address := fmt.Sprint("127.0.0.1:", n)
	s := &Server{Direct: "http://" + address}
	s.start = func() {
		began := time.Now()
		if s.process, err = child.Start(command(address)); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the server answers", func() bool { return ready(s.Direct) })
		s.took = time.Since(began)
	}
	s.start()
	t.Cleanup(s.Kill)
	s.Door = door.Open(t, door.To(t, s.Direct))
	return s
}

// Kill kills the server with SIGKILL.
func (s *Server) Kill() { s.process.Kill() }

// worked returns for how long processors have worked for the server's process, or 0 if it was
// started elsewhere or the system does not tell.
func (s *Server) worked() time.Duration {
	pid := os.Getpid()
	switch {
	case s.process != nil:
		pid = s.process.PID()
	case s.Direct != s.URL:
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if err != nil || !found || len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11]) // in hundredths of a second, as in proc(5)
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// Store opens a store, and closes it with the test.
func (k Kind) Store(t testing.TB, endpoint string, o Options) *store.Store {
	t.Helper()
	o.Poll = cmp.Or(o.Poll, 20*time.Millisecond)
	s, err := k.Open(t.Context(), endpoint, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Lease returns a lease of a new owner.
func Lease(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

func (k Kind) isWrite(r *http.Request) bool { return r.Method == k.Method }

var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("p%d", prefixes.Add(1)) }
