package page

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/doctor"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/observe"
	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/serve/rights"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/memstore"
)

// stage is a page over a store in memory, which a server serves.
type stage struct {
	t      testing.TB
	st     *store.Store
	page   *Page
	http   *http.Client // follows no redirection
	header http.Header  // of the last answer
	client *rights.Client
	url    string // without a slash at the end
}

// newStage returns a page over st, below prefix.
func newStage(t testing.TB, st *store.Store, prefix string) *stage {
	s := &stage{t: t, st: st, client: rights.Anyone(false), http: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	o := observe.New(st)
	s.page = New(Options{
		Observer: o, Client: leasehold.New(st, nil), Caps: st.Caps, Prefix: prefix, TraceURL: "https://traces.example/{trace}",
		Examine: func(context.Context) ([]doctor.Finding, error) { return doctor.Memory(), nil },
	})
	server := httptest.NewServer(http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.page.ServeHTTP(w, r.WithContext(rights.With(r.Context(), s.client)))
	})))
	t.Cleanup(func() {
		s.http.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
		o.Close()
	})
	s.url = server.URL + prefix
	return s
}

func memory(t testing.TB) *store.Store {
	st := memstore.New(nil)
	t.Cleanup(func() { st.Close() })
	return st
}

// hold has somebody hold a lock.
func (s *stage) hold(name string, h store.Holder, ttl time.Duration, kind store.Kind, weight int64) (store.Lease, store.Grant) {
	s.t.Helper()
	l := store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl, Kind: kind, Weight: weight, Meta: h.Encode()}
	g, err := s.st.Acquire(context.Background(), store.AcquireRequest{Lease: l})
	if err != nil {
		s.t.Fatal(err)
	}
	return l, g
}

// wait has somebody wait for a lock.
func (s *stage) wait(name string, h store.Holder, ttl time.Duration, kind store.Kind, weight int64) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	began := make(chan struct{}, 1)
	go func() {
		defer close(ended)
		l := store.Lease{Name: name, Owner: store.NewOwnerAt(h.Since), TTL: ttl, Kind: kind, Weight: weight, Meta: h.Encode()}
		s.st.Wait(ctx, store.WaitRequest{Lease: l}, func(error) {
			select {
			case began <- struct{}{}:
			default:
			}
		})
	}()
	select {
	case <-began:
	case <-time.After(30 * time.Second):
		s.t.Fatal("the waiter does not wait")
	}
	s.t.Cleanup(func() { cancel(); <-ended })
}

func holder(host string, pid int, purpose string, ago time.Duration) store.Holder {
	return store.Holder{Host: host, PID: pid, Purpose: purpose, Since: time.Now().Add(-ago), Trace: fmt.Sprintf("00-%032x-%016x-01", pid+1, 1)}
}

// day is a clock that a test sets.
type day struct{ ahead atomic.Int64 }

// at sets the clock to that long before now.
func (d *day) at(ago time.Duration) { d.ahead.Store(int64(100*time.Hour - ago)) }

func (d *day) clock() clock.Clock {
	now := clock.System()
	return clock.Func(func() clock.Instant { return now.Now().Add(time.Duration(d.ahead.Load())) })
}

// busy fills the store, which has the clock d, with what an ordinary day has.
func (s *stage) busy(d *day) {
	// hold has somebody hold a lock since some time ago, with so much left now.
	hold := func(ago, left time.Duration, name, host string, pid int, purpose string, kind store.Kind) (store.Lease, store.Grant) {
		d.at(ago)
		return s.hold(name, holder(host, pid, purpose, ago), ago+left, kind, 1)
	}
	mutex, three := store.Kind{}, store.Semaphore(3)
	hold(26*time.Hour, 54*time.Second, "scheduler", "scheduler-b", 1, "leader", mutex)
	h := holder("cron-2", 12, "ran today already", 2*time.Hour)
	h.Unrenewed = true
	d.at(2 * time.Hour)
	s.hold("nightly/rotate-logs", h, 8*time.Hour, mutex, 1)
	hold(94*time.Minute, 43*time.Second, "billing/close-month", "worker-3", 4117, "close the books of November", mutex)
	hold(31*time.Minute, 4*time.Second, "reports/weekly", "reports-2", 912, "weekly report", mutex)
	_, etl := hold(17*time.Minute, 22*time.Second, "etl/load-orders", "etl-1", 2240, "load orders of yesterday", mutex)
	hold(12*time.Minute, 41*time.Second, "terraform/network.tfstate", "alice-laptop", 60213, "terraform apply", mutex)
	hold(11*time.Minute, 57*time.Second, "encode/slots", "media-1", 310, "encode 2291.mov", three)
	hold(4*time.Minute, 56*time.Second, "encode/slots", "media-4", 977, "encode 2295.mov", three)
	hold(185*time.Second, 39*time.Second, "deploy/production", "ci-runner-12", 88123, "deploy api 4.12.0 to production", mutex)
	hold(time.Minute, 54*time.Second, "encode/slots", "media-2", 641, "encode 2297.mov", three)
	staging, _ := hold(50*time.Second, 30*time.Second, "deploy/staging", "ci-runner-04", 20177, "deploy web 2.0.0 to staging", mutex)
	hold(28*time.Second, 44*time.Second, "inventory/snapshot", "db-tools", 5020, "", store.ReadWrite)
	hold(25*time.Second, 49*time.Second, "inventory/snapshot", "reports-1", 333, "stock of November", store.ReadWrite)
	s.wait("deploy/production", holder("ci-runner-07", 1533, "deploy web 2.0.1 to production", 140*time.Second), time.Minute, mutex, 1)
	s.wait("deploy/production", holder("ci-runner-02", 7130, "roll back api", 35*time.Second), time.Minute, mutex, 1)
	s.wait("encode/slots", holder("media-5", 80, "encode 2301.mov", 50*time.Second), time.Minute, three, 1)

	look := func(ago time.Duration) {
		d.at(ago)
		before := s.page.Observer.View(context.Background()).ID
		for range 2 { // the first one may have begun before
			v, err := s.page.Observer.Next(context.Background(), before)
			if err != nil {
				s.t.Fatal(err)
			}
			before = v.ID
		}
	}
	look(20 * time.Second)
	if err := s.st.Release(context.Background(), store.ReleaseRequest{Lease: staging}); err != nil {
		s.t.Fatal(err)
	}
	hold(20*time.Second, 37*time.Second, "deploy/staging", "ci-runner-03", 20111, "deploy web 2.0.1 to staging", mutex)
	look(10 * time.Second)
	err := s.page.Client.Operator().Break(context.Background(), leasehold.BreakRequest{Name: "etl/load-orders", Token: leasehold.Token(etl.Token), By: "alice", Reason: "hangs since the network change", Now: true})
	if err != nil {
		s.t.Fatal(err)
	}
	look(0)
	for s.page.Observer.View(context.Background()).Counts.LostExpired == 0 {
		look(0)
	}
}

// get asks for a path of the page, and returns the status and the body.
func (s *stage) get(path string) (int, string) { return s.do("GET", path, "", nil) }

func query(values ...string) string {
	u := url.Values{}
	for i := 0; i < len(values); i += 2 {
		u.Set(values[i], values[i+1])
	}
	return u.Encode()
}

// do sends a request. header has names and values in turn.
func (s *stage) do(method, path, form string, header []string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(form))
	if err != nil {
		s.t.Fatal(err)
	}
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	s.header = answer.Header
	return answer.StatusCode, string(b)
}
