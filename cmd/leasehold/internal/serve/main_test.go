package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/remotestore"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(storeVar); url != "" {
		if err := serveAsChild(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// start starts a server of st and returns its URL.
func start(t *testing.T, o serve.Options) (url string, s *serve.Server) {
	t.Helper()
	if o.Store == nil {
		o.Store = memstore.New(nil)
		t.Cleanup(func() { o.Store.Close() })
	}
	s = serve.New(o)
	srv := httptest.NewUnstartedServer(s)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv.Listener.Close()
	srv.Listener = l
	srv.Config.Protocols = &http.Protocols{}
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(s.Leave) // the goroutines of its batches
	return srv.URL, s
}

// remote opens the store behind the servers of url.
func remote(t *testing.T, url string, transport http.RoundTripper) *store.Store {
	t.Helper()
	s, err := remotestore.Open(context.Background(), url, &remotestore.Options{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// dial connects to the server of url.
func dial(t *testing.T, url string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
