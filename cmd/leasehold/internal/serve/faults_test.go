package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve"
	"github.com/leasehold-dev/leasehold/internal/httpapi"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// faulty is a network that loses requests and answers, and delivers requests late.
type faulty struct {
	http.RoundTripper
	lose, reply, late float64
	n, batches        atomic.Int64
	stalled           chan struct{} // told of each request about the lock called stall, which gets no answer

	mu     sync.Mutex
	random *rand.Rand
	under  sync.WaitGroup // requests that are delivered late
}

var errLost = errors.New("the network lost it")

func (f *faulty) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/stall/acquire") {
		select {
		case f.stalled <- struct{}{}:
		default:
		}
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if r.URL.Path == "/v1/batch" {
		f.batches.Add(1)
	}
	f.mu.Lock()
	p := f.random.Float64()
	f.mu.Unlock()
	streams := r.Header.Get("Accept") == "application/x-ndjson" && r.URL.Path != "/v1/batch"
	switch {
	case p < f.lose:
		f.n.Add(1)
		return nil, errLost
	case p < f.lose+f.reply && !streams:
		f.n.Add(1)
		resp, err := f.RoundTripper.RoundTrip(r)
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return nil, errLost
	case p < f.lose+f.reply+f.late && !streams && r.URL.Path != "/v1/store":
		f.n.Add(1)
		var body []byte
		if r.Body != nil {
			body, _ = io.ReadAll(r.Body)
		}
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		f.under.Go(func() {
			time.Sleep(40 * time.Millisecond)
			if resp, err := f.RoundTripper.RoundTrip(again); err == nil {
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
		return nil, errLost
	}
	return f.RoundTripper.RoundTrip(r)
}

func (f *faulty) CloseIdleConnections() {
	f.under.Wait()
	f.RoundTripper.(*http.Transport).CloseIdleConnections()
}

// The suite holds over two servers while one request in six is lost, is answered with a lost
// answer, or arrives late.
func TestConformanceUnderFaults(t *testing.T) {
	var shared *store.Store
	var urls string
	seed := uint64(0)
	var all []*faulty
	open := func(t *testing.T) *store.Store {
		seed++
		f := &faulty{RoundTripper: &http.Transport{MaxIdleConnsPerHost: 64}, lose: 0.05, reply: 0.06, late: 0.05, random: rand.New(rand.NewPCG(1, seed))}
		all = append(all, f)
		st := remote(t, urls, f)
		if seed%2 == 0 { // calls go in batches, since four requests are under way
			f.stalled = make(chan struct{}, 4)
			for range 4 {
				f.under.Go(func() {
					st.Acquire(context.Background(), store.AcquireRequest{Lease: store.Lease{Name: "stall", Owner: store.NewOwner(), TTL: time.Minute}})
				})
			}
			for range 4 {
				<-f.stalled
			}
		}
		return st
	}
	storetest.Run(t, func(t *testing.T) *store.Store {
		shared = memstore.New(nil)
		a, _ := start(t, serve.Options{Store: shared})
		b, _ := start(t, serve.Options{Store: shared})
		urls = a + "," + strings.TrimPrefix(b, "http://")
		return open(t)
	}, storetest.Options{Second: open, ShortTTL: 500 * time.Millisecond})
	n, batches := int64(0), int64(0)
	for _, f := range all {
		n, batches = n+f.n.Load(), batches+f.batches.Load()
	}
	if n < 500 || batches < 100 {
		t.Errorf("%d faults and %d batches, want 500 and 100 at least", n, batches)
	}
}

// fragile is a listener whose connections can be broken as if the network was.
type fragile struct {
	net.Listener
	last atomic.Pointer[fragileConn]
}

func (l *fragile) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	f := &fragileConn{Conn: c}
	l.last.Store(f)
	return f, nil
}

type fragileConn struct {
	net.Conn
	cut atomic.Bool
}

func (c *fragileConn) breaks() {
	c.cut.Store(true)
	c.Conn.SetReadDeadline(time.Unix(1, 0))
}

func (c *fragileConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() && err != nil {
		err = syscall.ETIMEDOUT // as the system does after TCP_USER_TIMEOUT
	}
	return n, err
}

// A client whose connection broke may live on without knowing: its lock is not released before the
// time that it was told last. A client that closes the connection knows, so its lock is free at once.
func TestBrokenConnection(t *testing.T) {
	_, s := start(t, serve.Options{})
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &fragile{Listener: plain}
	served := make(chan error, 1)
	go func() { served <- s.Serve(t.Context(), l, serve.Listening{Drain: time.Second}) }()
	t.Cleanup(func() {
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	url := "http://" + plain.Addr().String()
	for _, c := range []struct {
		name string
		ttl  time.Duration
		end  func(holder net.Conn)
	}{
		{"broken", 3 * time.Second, func(net.Conn) { l.last.Load().breaks() }},
		{"closed", time.Hour, func(holder net.Conn) { holder.Close() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			holder, sent := dial(t, url), time.Now()
			body := fmt.Sprintf(`{"ttl_ms":%d}`, c.ttl.Milliseconds())
			fmt.Fprintf(holder, "POST /v1/locks/%s/hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", c.name, len(body), body)
			in := bufio.NewReader(holder)
			var held struct {
				At    int64 `json:"at_ms"`
				Valid int64 `json:"valid_ms"`
			}
			for held.Valid == 0 {
				line, err := in.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				json.Unmarshal([]byte(line), &held) // the other lines are of HTTP
			}
			until := sent.Add(time.Duration(held.At+held.Valid) * time.Millisecond)
			c.end(holder)
			if r := ask(t, "POST", url, "/v1/locks/"+c.name+"/acquire", m{"owner": store.NewOwner(), "wait_ms": 60_000}); r.status != 200 {
				t.Fatalf("%d %s", r.status, r.text)
			}
			if early := time.Until(until); c.name == "broken" && early > 0 {
				t.Errorf("another client has the lock %v before the holder knows", early)
			}
		})
	}
}

// cutOff is a store that renews nothing once it is cut off.
type cutOff struct {
	store.Engine
	cut atomic.Bool
}

func (c *cutOff) Renew(ctx context.Context, leases []store.Lease) []error {
	if !c.cut.Load() {
		return c.Engine.Renew(ctx, leases)
	}
	errs := make([]error, len(leases))
	for i := range errs {
		errs[i] = syscall.ETIMEDOUT
	}
	return errs
}

// A server that could not renew a lease does not end it once it can: its holder may have gone on
// at another server.
func TestHoldGoesOnWhileServerIsCutOff(t *testing.T) {
	engine := memstore.New(nil).Engine()
	first := &cutOff{Engine: engine}
	st, other := store.New(first), store.New(engine)
	t.Cleanup(func() { st.Close() })
	a, _ := start(t, serve.Options{Store: st})
	b, _ := start(t, serve.Options{Store: other})
	old := open(t, a, "/v1/locks/l/hold", m{"ttl_ms": 2000, "keep": true})
	held := old.next()
	first.cut.Store(true)
	on := open(t, b, "/v1/locks/l/hold", m{"ttl_ms": 60_000, "keep": true, "owner": held["owner"]})
	if e := on.next(); e["event"] != "held" || e["token"] != held["token"] {
		t.Fatalf("the holder goes on with %v, want %v", e, held)
	}
	if e := old.next("held"); e["event"] != "lost" {
		t.Errorf("a server that cannot renew says %v", e)
	}
	old.over()
	if r := ask(t, "POST", b, "/v1/locks/l/acquire", m{"owner": store.NewOwner()}); r.kind != httpapi.Busy {
		t.Errorf("another client: %d %s, want busy", r.status, r.text)
	}
}

// slowRelease is a store whose answers to releases do not arrive before they may.
type slowRelease struct {
	store.Engine
	done, may chan struct{}
}

func (s *slowRelease) Release(ctx context.Context, r store.ReleaseRequest) error {
	if err := s.Engine.Release(ctx, r); err != nil {
		return err
	}
	close(s.done)
	select {
	case <-s.may:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A client whose connection broke during a release, and that asks again, learns that it released
// the lock.
func TestReleaseIsAskedAgain(t *testing.T) {
	slow := &slowRelease{Engine: memstore.New(nil).Engine(), done: make(chan struct{}), may: make(chan struct{})}
	st := store.New(slow)
	t.Cleanup(func() { st.Close() })
	s := serve.New(serve.Options{Store: st})
	came := make(chan context.Context, 3)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- r.Context()
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	owner := store.NewOwner()
	ask(t, "POST", srv.URL, "/v1/locks/l/acquire", m{"owner": owner})
	<-came
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if resp, err := http.DefaultClient.Do(request(t, "POST", srv.URL, "/v1/locks/l/release", m{"owner": owner, "call": "c"}).WithContext(ctx)); err == nil {
			resp.Body.Close()
			t.Error("the request was answered")
		}
	})
	<-slow.done
	stop()
	<-(<-came).Done()
	group.Go(func() {
		if r := ask(t, "POST", srv.URL, "/v1/locks/l/release", m{"owner": owner, "call": "c", "again": 1}); r.status != http.StatusNoContent {
			t.Errorf("asked again: %d %s", r.status, r.text)
		}
	})
	<-came
	close(slow.may)
	group.Wait()
}
