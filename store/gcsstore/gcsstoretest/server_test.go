package gcsstoretest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
)

// The test program is the server as well, if serverVar names its address and the directory of its
// objects.
const serverVar = "LEASEHOLD_TEST_GCS_SERVER"

func TestMain(m *testing.M) {
	if address, dir, ok := strings.Cut(os.Getenv(serverVar), " "); ok {
		fmt.Fprintln(os.Stderr, serve(address, dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine), goleak.IgnoreAnyFunction("go.opencensus.io/stats/view.(*worker).start"))
}

const bucket = "locks"

// serve runs a server until the process is killed.
func serve(address, dir string) error {
	e, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Writer: io.Discard, StorageRoot: dir})
	if err != nil {
		return err
	}
	e.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucket})
	return http.ListenAndServe(address, e.HTTPHandler())
}

// durable is a server in a process of its own that can be killed and started again with its
// objects.
type durable struct {
	t            *testing.T
	address, dir string
	process      *child.Process
}

// startDurable starts such a server, and ends it with the test.
func startDurable(t *testing.T) *durable {
	t.Helper()
	n, err := port.Pick()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Release(n) })
	d := &durable{t: t, address: fmt.Sprint("127.0.0.1:", n), dir: t.TempDir()}
	d.start()
	t.Cleanup(func() { d.process.Kill() })
	return d
}

func (d *durable) url() string { return "http://" + d.address }

func (d *durable) start() {
	d.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVar+"="+d.address+" "+d.dir)
	p, err := child.Start(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	d.process = p
	eventually.True(d.t, "the server answers", func() bool {
		defer http.DefaultClient.CloseIdleConnections()
		res, err := http.Get(d.url() + "/storage/v1/b/" + bucket)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// server is an emulator behind a door.
type server struct {
	*door.Door
	emulator *fakestorage.Server
}

// start starts a server with a bucket, and ends it with the test.
func start(t testing.TB) *server {
	t.Helper()
	e, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true, Writer: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	e.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: bucket})
	return &server{door.Open(t, e.HTTPHandler()), e}
}

// failure answers with an error of Cloud Storage.
func failure(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": status, "message": "as the test asked for", "errors": []any{map[string]string{"reason": reason}}}})
}

func isWrite(r *http.Request) bool { return r.Method == http.MethodPost }

// open opens a store, and closes it with the test.
func open(t testing.TB, endpoint string, o gcsstore.Options) *store.Store {
	t.Helper()
	o.Endpoint, o.Poll = endpoint, cmp.Or(o.Poll, 20*time.Millisecond)
	st, err := gcsstore.Open(t.Context(), bucket, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func lease(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}

var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("p%d", prefixes.Add(1)) }
