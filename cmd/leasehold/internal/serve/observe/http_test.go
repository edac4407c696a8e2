package observe

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// served returns a server for o, whose clients may do what client may.
func served(t *testing.T, h http.HandlerFunc, client *rights.Client) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h(w, r.WithContext(rights.With(r.Context(), client)))
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// follow returns the lines that begin with "id:" or "data:" of a stream of events.
func follow(t *testing.T, url, after string) <-chan string {
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		r.Header.Set("Last-Event-ID", after)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines, ended := make(chan string, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		for s := bufio.NewScanner(answer.Body); s.Scan(); {
			if text := s.Text(); strings.HasPrefix(text, "id:") || strings.HasPrefix(text, "data:") {
				lines <- text
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		answer.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return lines
}

func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(time.Minute):
		t.Fatal("no event came")
		return ""
	}
}

// A client is told what happens to the locks with its prefix, and after a break of the connection
// what it has missed.
func TestServeEvents(t *testing.T) {
	st := memstore.New(nil)
	o := New(st)
	t.Cleanup(o.Close)
	url := served(t, o.ServeEvents, rights.Anyone(false))
	lines := follow(t, url+"?prefix=a", "")
	for _, name := range []string{"b", "a\n\ndata: forged"} {
		if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: leaseOf(name, "x", time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	id := strings.TrimPrefix(next(t, lines), "id: ")
	if data := next(t, lines); !strings.Contains(data, `"event":"acquired"`) || !strings.Contains(data, `"name":"a\n\ndata: forged"`) || !strings.Contains(data, `"owner":"x"`) {
		t.Errorf("got %s", data)
	}
	if _, err := st.Acquire(t.Context(), store.AcquireRequest{Lease: leaseOf("a", "y", time.Hour)}); err != nil {
		t.Fatal(err)
	}
	next(t, lines)
	live := next(t, lines)
	again := follow(t, url+"?prefix=a", id)
	next(t, again)
	if data := next(t, again); data != live {
		t.Errorf("what was missed: got %s, want %s", data, live)
	}
	select { // another server's ID means nothing here
	case line := <-follow(t, url+"?prefix=a", "zzz-0"):
		t.Errorf("got %s", line)
	case <-time.After(100 * time.Millisecond):
	}
	nobody := follow(t, served(t, o.ServeEvents, &rights.Client{}), id)
	v := o.Latest()
	for range 2 {
		v, _ = o.Next(t.Context(), v.ID)
	}
	select {
	case line := <-nobody:
		t.Errorf("without the right to look: %s", line)
	default:
	}
}

// The process is ready while the store answers, and healthy always.
func TestServeProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newWatched()
		o := New(store.New(st))
		defer o.Close()
		status := func(path string) int {
			w := httptest.NewRecorder()
			o.ServeProbes(w, httptest.NewRequest("GET", path, nil))
			return w.Code
		}
		if a, b, c := status("/healthz"), status("/readyz"), status("/metrics"); a != 200 || b != 200 || c != 200 {
			t.Errorf("at first: %d %d %d", a, b, c)
		}
		st.fail(nil, true)
		time.Sleep(lookTimeout + silent)
		if a, b, c := status("/healthz"), status("/readyz"), status("/metrics"); a != 200 || b != 503 || c != 200 {
			t.Errorf("while the store hangs: %d %d %d", a, b, c)
		}
		st.fail(nil, false)
		time.Sleep(lookTimeout + silent)
		if b := status("/readyz"); b != 200 {
			t.Errorf("when it answers again: %d", b)
		}
		if x := status("/nowhere"); x != 404 {
			t.Errorf("elsewhere: %d", x)
		}
	})
}
