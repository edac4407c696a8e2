package azblobstoretest

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
)

// emulatorVar names the program azurite-blob. "make azure" installs it.
const emulatorVar = "LEASEHOLD_AZURITE"

// The account that every Azurite has, and its key, which are in its documentation.
const (
	account   = "devstoreaccount1"
	key       = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	container = "locks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine)) }

// server is an emulator behind a door. Its URL ends with the account.
type server struct {
	*door.Door
	url string
}

// start starts a server with a container, and ends it with the test.
func start(t testing.TB) *server {
	t.Helper()
	program := os.Getenv(emulatorVar)
	if program == "" {
		t.Skip(emulatorVar + ` does not name the program azurite-blob: "make azure" installs it`)
	}
	n, err := port.Pick()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Release(n) })
	p, err := child.Start(exec.Command(program, "--blobHost", "127.0.0.1", "--blobPort", fmt.Sprint(n), "--inMemoryPersistence", "--silent", "--skipApiVersionCheck", "--disableTelemetry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	d := door.Open(t, door.To(t, fmt.Sprint("http://127.0.0.1:", n)))
	s := &server{d, d.URL + "/" + account}
	eventually.True(t, "the server makes a container", func() bool {
		status := s.signed(t, http.MethodPut, "", "restype:container")
		return status == http.StatusCreated || status == http.StatusConflict
	})
	s.Taken()
	return s
}

// signed makes a request with the key, for a blob or the container, and returns the status of the
// answer, or 0 if there is none. query has the form name:value.
func (s *server) signed(t testing.TB, method, blob, query string) int {
	t.Helper()
	path := strings.TrimRight("/"+account+"/"+container+"/"+blob, "/")
	date := time.Now().UTC().Format(http.TimeFormat)
	text := method + strings.Repeat("\n", 12) + "x-ms-date:" + date + "\nx-ms-version:2023-11-03\n/" + account + path
	if query != "" {
		text += "\n" + query
	}
	secret, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	req, err := http.NewRequestWithContext(t.Context(), method, s.Door.URL+path+"?"+strings.Replace(query, ":", "=", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"X-Ms-Date": {date}, "X-Ms-Version": {"2023-11-03"}, "Authorization": {"SharedKey " + account + ":" + base64.StdEncoding.EncodeToString(mac.Sum(nil))}}
	res, err := s.Client().Do(req)
	if err != nil {
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// failure answers with an error of Azure.
func failure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
	fmt.Fprintf(w, "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><Error><Code>%s</Code><Message>as the test asked for</Message></Error>", code)
}

func isWrite(r *http.Request) bool { return r.Method == http.MethodPut }

// open opens a store, and closes it with the test.
func open(t testing.TB, s *server, o azblobstore.Options) *store.Store {
	t.Helper()
	o.Account, o.Key, o.Endpoint, o.Poll = account, key, s.url, cmp.Or(o.Poll, 20*time.Millisecond)
	st, err := azblobstore.Open(t.Context(), container, &o)
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
