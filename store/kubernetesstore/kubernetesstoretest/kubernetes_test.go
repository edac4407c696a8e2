package kubernetesstoretest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/idle"
	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// conform runs the suite. prepare is called with the server of each test.
func conform(t *testing.T, prepare func(*server)) {
	var srv *server
	second := func(t *testing.T) *store.Store { return open(t, srv, kubernetesstore.Options{}) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		srv = start(t)
		prepare(srv)
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

func TestConforms(t *testing.T) {
	t.Parallel()
	conform(t, func(*server) {})
}

// The suite holds while answers are lost and the server errs.
func TestConformsUnderFaults(t *testing.T) {
	t.Parallel()
	conform(t, func(s *server) {
		s.Lose(func(r *http.Request) bool { return !isWatch(r) && mathrand.IntN(20) == 0 })
		s.Answer(func(w http.ResponseWriter, _ *http.Request) bool {
			errs := mathrand.IntN(30) == 0
			if errs {
				failure(w, http.StatusInternalServerError, "InternalError")
			}
			return errs
		})
	})
}

// What locks cost in requests, which docs/kubernetes.md tells.
func TestRequests(t *testing.T) {
	srv := start(t)
	expect := func(what string, gets, posts, puts int) {
		t.Helper()
		if n := srv.Taken(); n[http.MethodGet] != gets || n[http.MethodPost] != posts || n[http.MethodPut] != puts {
			t.Errorf("%s: %v requests, want %d GET, %d POST and %d PUT", what, n, gets, posts, puts)
		}
	}
	s := open(t, srv, kubernetesstore.Options{})
	expect("open", 1, 0, 0)
	for i := range 3 {
		l := lease("a", time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		expect("acquire", []int{2, 0, 0}[i], []int{1, 0, 0}[i], []int{0, 1, 1}[i])
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Fatal(err)
		}
		expect("renew", 0, 0, 1)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		expect("release", 0, 0, 1)
	}
	if all, err := s.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	expect("list", 1, 0, 0)
}

// An idle holder and an idle waiter make as many requests as docs/kubernetes.md says.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	srv := start(t)
	const ttl = 3 * time.Second
	_, n, passed := idle.Cost(t, open(t, srv, kubernetesstore.Options{}), open(t, srv, kubernetesstore.Options{}), ttl, srv.Taken)
	// Each refreshes in a third of the TTL. It writes twice, and reads once more, if the other one
	// has written meanwhile. The waiter begins one watch.
	thirds := int(passed/(ttl/3)) + 2
	if n[http.MethodPut] > 2*2*thirds || n[http.MethodGet] > 2*thirds+2 || n[http.MethodPost] > 0 {
		t.Errorf("%v requests in %v, want at most %d PUT and %d GET", n, passed, 2*2*thirds, 2*thirds+2)
	}
	t.Logf("in %v with a TTL of %v: %v", passed.Round(time.Millisecond), ttl, n)
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

// Each verb meets each fault.
func TestFaults(t *testing.T) {
	srv := start(t)
	storetest.RunFaults(t, func(t *testing.T) (*store.Store, storetest.Link) {
		l, url := objectstest.LinkTo(t, srv.Door, func(w http.ResponseWriter) { failure(w, http.StatusForbidden, "Forbidden") })
		c := srv.config()
		c.Host = url
		return open(t, srv, kubernetesstore.Options{Config: c}), l
	}, storetest.Options{Second: func(t *testing.T) *store.Store { return open(t, srv, kubernetesstore.Options{}) }})
}

// Errors of the server are no refusals.
func TestServerErrors(t *testing.T) {
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	for status, reason := range map[int]string{http.StatusTooManyRequests: "TooManyRequests", http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable", http.StatusGatewayTimeout: "Timeout", http.StatusUnauthorized: "Unauthorized"} {
		objectstest.ErrsOnce(t, s, srv.Door, isWrite, reason, func(w http.ResponseWriter) { failure(w, status, reason) })
	}
}

// A refusal, such as for a missing right, is returned at once and with the reason. Credentials are
// tried twice, since they may just have been replaced.
func TestRefusalsAreFinal(t *testing.T) {
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	for status, reason := range map[int]string{http.StatusForbidden: "Forbidden", http.StatusUnauthorized: "Unauthorized", http.StatusUnprocessableEntity: "Invalid"} {
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool { failure(w, status, reason); return true })
		srv.Taken()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(strings.ToLower(reason), time.Minute)})
		want := 1
		if status == http.StatusUnauthorized {
			want = 2
		}
		if n := srv.Taken(); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), reason) || n[http.MethodGet] != want || n[http.MethodPost] != 0 {
			t.Errorf("acquire: %v after %v requests, want %d and an error with %s", err, n, want, reason)
		}
	}
	other := start(t)
	other.namespace = "missing"
	if _, err := open(t, other, kubernetesstore.Options{}).Acquire(t.Context(), store.AcquireRequest{Lease: lease("a", time.Minute)}); !errors.Is(err, recordstore.ErrRefused) {
		t.Errorf("acquire in a namespace that there is not: %v, want a refusal", err)
	}
}

// ask makes a request as the admin, past the store.
func (s *server) ask(t *testing.T, method, path, content string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, s.Door.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + admin}, "Content-Type": {content}}
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer map[string]any
	in := json.NewDecoder(res.Body)
	in.UseNumber()
	if err := in.Decode(&answer); err != nil || res.StatusCode >= 300 {
		t.Fatalf("%s %s: %s, %v, %v", method, path, res.Status, answer, err)
	}
	return answer
}

// remove deletes the object of a lock by hand.
func (s *server) remove(t *testing.T, name string) {
	t.Helper()
	s.ask(t, http.MethodDelete, s.path(name), "application/json", nil)
}

// use acquires and releases a lock, and returns the token.
func use(t *testing.T, s *store.Store, name string) fence.Token {
	t.Helper()
	l := lease(name, time.Minute)
	g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
	if err == nil {
		err = s.Release(t.Context(), store.ReleaseRequest{Lease: l})
	}
	if err != nil {
		t.Fatal(err)
	}
	return g.Token
}

// What others have put into an object stays as it is.
func TestForeignContent(t *testing.T) {
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	foreign := func() map[string]any {
		o := srv.ask(t, http.MethodGet, srv.path("a"), "", nil)
		for _, ours := range []string{"holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"} {
			delete(o["spec"].(map[string]any), ours)
		}
		meta := o["metadata"].(map[string]any)
		delete(meta, "resourceVersion")
		delete(meta, "managedFields")
		notes := meta["annotations"].(map[string]any)
		maps.DeleteFunc(notes, func(k string, _ any) bool { return strings.HasPrefix(k, "leasehold") })
		return o
	}
	use(t, s, "a")
	for i := range 3 {
		o := srv.ask(t, http.MethodGet, srv.path("a"), "", nil)
		change := map[string]any{
			"metadata": map[string]any{
				"labels":          map[string]any{"team": fmt.Sprint("t", i)},
				"annotations":     map[string]any{"note": fmt.Sprint("<é\u2028>", i), "long": strings.Repeat("x", 200<<10)},
				"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": fmt.Sprint("p", i), "uid": "u"}},
				"finalizers":      []any{"example.com/keep"},
			},
		}
		if srv.api == nil { // a newer server
			change["spec"] = map[string]any{"future": map[string]any{"number": json.Number("9007199254740993"), "none": []any{}}}
		}
		srv.ask(t, http.MethodPut, srv.path("a"), "application/json", merge(o, change))
		want := foreign()
		use(t, s, "a") // with an old version in the cache
		use(t, s, "a")
		use(t, open(t, srv, kubernetesstore.Options{}), "a")
		if got := foreign(); !reflect.DeepEqual(got, want) {
			t.Errorf("the object has\n%v after locks, want\n%v", got, want)
		}
	}
}

// object is a Lease, as far as tests look at it.
type object struct {
	Metadata struct {
		Labels, Annotations map[string]string
	}
	Spec struct {
		HolderIdentity                         string
		LeaseDurationSeconds, LeaseTransitions int
		RenewTime, AcquireTime                 time.Time
	}
}

// object returns the object of a lock.
func (s *server) object(t *testing.T, name string) (o object) {
	t.Helper()
	text, err := json.Marshal(s.ask(t, http.MethodGet, s.path(name), "", nil))
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// If somebody deletes the objects, tokens go on rising.
func TestDeletedObjects(t *testing.T) {
	srv := start(t)
	s, other := open(t, srv, kubernetesstore.Options{}), open(t, srv, kubernetesstore.Options{})
	var last fence.Token
	for range 3 {
		for _, s := range []*store.Store{s, other} {
			for range 2 {
				token := use(t, s, "a")
				if token <= last {
					t.Fatalf("token %v after %v, want a larger one", token, last)
				}
				last = token
			}
		}
		srv.remove(t, "a")
	}
}

// A lock has the object of its name, if an object can have it, and one that resembles it otherwise.
func TestNames(t *testing.T) {
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	long := strings.Repeat("a", 253)
	names := map[string]string{
		"my-app.example.com": "my-app.example.com", long: long, "7": "7",
		"jobs/Nightly": "jobs-nightly.", "jobs/nightly": "jobs-nightly.", "ä": "lock.", long + "a": long[:100] + ".", "a b\xff": "a-b.", "-a": "a.",
		"a.0123456789abcdef0123456789abcdef": "a-0123456789abcdef0123456789abcdef.",
	}
	for name := range names {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(name, time.Hour)}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	held, err := s.List(t.Context(), "")
	if err != nil || len(held) != len(names) {
		t.Errorf("list: %d locks, %v, want %d", len(held), err, len(names))
	}
	for name, want := range names {
		if k, ok := strings.CutSuffix(want, "."); !ok {
			srv.object(t, name)
		} else if got := kubernetesstore.ObjectName(name); !strings.HasPrefix(got, want) || len(got) != len(k)+33 {
			t.Errorf("%q is object %q, want one that begins with %q", name, got, want)
		}
	}
}

// Clients contend for a lock while answers are lost and the server errs: no two hold the lock at
// once, tokens rise, and each client gets it.
func TestContest(t *testing.T) {
	srv := start(t)
	var clients []store.Engine
	for range 6 {
		clients = append(clients, open(t, srv, kubernetesstore.Options{}))
	}
	srv.Lose(func(r *http.Request) bool { return isWrite(r) && mathrand.IntN(20) == 0 })
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch mathrand.IntN(100) {
		case 0:
			failure(w, http.StatusInternalServerError, "InternalError")
		case 1:
			failure(w, http.StatusServiceUnavailable, "ServiceUnavailable")
		default:
			return false
		}
		return true
	})
	contend(t, 4*time.Second, "with lost answers", nil, clients...)
}

// contend has clients contend for a lock, undisturbed and then, if it is not nil, with trouble.
func contend(t *testing.T, ttl time.Duration, what string, trouble func(goesOn func(what string)), clients ...store.Engine) {
	t.Helper()
	c := &contest.Contest{Name: "contested", TTL: ttl}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, s := range clients {
		wg.Go(func() { c.Contend(ctx, t, s) })
	}
	goesOn := func(what string) { c.GoesOn(t, what, 2*time.Minute, clients...) }
	if goesOn(what); trouble != nil {
		trouble(goesOn)
	}
	cancel()
	wg.Wait()
}

// kubeconfig writes a kubeconfig with the server, behind TLS, and a token, and returns its path. Without TLS
// client-go sends no token.
func kubeconfig(t *testing.T, s *server, token string) string {
	t.Helper()
	front := httptest.NewTLSServer(door.To(t, s.Door.URL))
	t.Cleanup(front.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],`+
		`"clusters":[{"name":"k","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"u","user":{"token":%q}}]}`,
		front.URL, base64.StdEncoding.EncodeToString(ca), token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Processes that compete for locks of all kinds, and are stopped and killed meanwhile, never hold
// one at the same time, are told of losses in time, and wait for a free lock no longer than
// docs/kubernetes.md says.
func TestTorture(t *testing.T) {
	t.Parallel()
	srv := start(t)
	torturetest.Run(t, "kubernetes://"+srv.namespace+"?kubeconfig="+kubeconfig(t, srv, admin), 4*time.Second, 14*time.Second, nil)
}

func TestDeadHolderIsSeenByNewClients(t *testing.T) {
	t.Parallel()
	srv := start(t)
	for range 2 { // after which the server notes no dates
		use(t, open(t, srv, kubernetesstore.Options{}), "job")
	}
	objectstest.DeadHolderIsSeenByNewClients(t, func(skew time.Duration) *store.Store {
		return open(t, srv, kubernetesstore.Options{Skew: skew})
	})
}

// Credentials are sent to nobody whose certificate is not trusted, and none is in an error.
func TestCredentials(t *testing.T) {
	srv := start(t)
	var sent []string
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		failure(w, http.StatusForbidden, "Forbidden")
	}))
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	for what, c := range map[string]struct {
		o    kubernetesstore.Options
		says string
	}{
		"a certificate that nobody trusts": {kubernetesstore.Options{Config: &rest.Config{Host: front.URL, BearerToken: "hush"}}, "certificate"},
		"another token":                    {kubernetesstore.Options{Config: &rest.Config{Host: srv.Door.URL, BearerToken: "hush"}}, "401"},
		"no kubeconfig":                    {kubernetesstore.Options{Kubeconfig: filepath.Join(t.TempDir(), "none")}, "KUBECONFIG"},
		"a context that there is not":      {kubernetesstore.Options{Kubeconfig: kubeconfig(t, srv, "hush"), Context: "d"}, "\"d\""},
	} {
		c.o.Timeout = 2 * time.Second
		s, err := kubernetesstore.Open(t.Context(), "kubernetes://"+srv.namespace, &c.o)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want a refusal that says %q", what, err, c.says)
		}
	}
	if len(sent) > 0 {
		t.Errorf("sent %q to a server that nobody trusts", sent)
	}
	t.Setenv("KUBECONFIG", kubeconfig(t, srv, admin))
	s, err := store.Open(t.Context(), "kubernetes://"+srv.namespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// Lists have all pages, each lock once, also if etcd forgets meanwhile what the first page was of.
func TestLists(t *testing.T) {
	srv := start(t)
	s := open(t, srv, kubernetesstore.Options{})
	const locks = 120
	for i := range locks {
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(fmt.Sprint("lock-", i), time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	second := door.Once(func(r *http.Request) bool { return r.URL.Query().Has("continue") })
	forgot := false
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		forget := second(r)
		if forget {
			forgot = true
			failure(w, http.StatusGone, "Expired")
		}
		return forget
	})
	for range 2 {
		if held, err := s.List(t.Context(), ""); err != nil || len(held) != locks {
			t.Errorf("list: %d locks, %v, want %d", len(held), err, locks)
		}
	}
	if !forgot {
		t.Error("the list had one page")
	}
}

// A waiter whose watch has ended, because it was too old, still gets the lock.
func TestWatchEnds(t *testing.T) {
	srv := start(t)
	holder, waiter := open(t, srv, kubernetesstore.Options{}), open(t, srv, kubernetesstore.Options{})
	held := lease("a", time.Minute)
	if _, err := holder.Acquire(t.Context(), store.AcquireRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	watches, cut := 0, make(chan struct{})
	var mu sync.Mutex
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if !isWatch(r) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		if watches++; watches > 2 {
			return false
		}
		if watches == 2 {
			defer close(cut)
		}
		fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}`)
		return true
	})
	got := make(chan error, 1)
	go func() {
		_, err := waiter.Wait(t.Context(), store.WaitRequest{Lease: lease("a", time.Minute)}, nil)
		got <- err
	}()
	<-cut
	if err := holder.Release(t.Context(), store.ReleaseRequest{Lease: held}); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

// What the doctor is told.
func TestExamine(t *testing.T) {
	srv := start(t)
	o := &kubernetesstore.Options{Config: srv.config()}
	for range 2 { // the second time the object of the probe is there
		e, err := kubernetesstore.Examine(t.Context(), "kubernetes://"+srv.namespace, o)
		if err != nil || e.Unusable != nil || len(e.Missing) > 0 || !e.Unverified || e.Version == "" || e.Class != store.CrashSafe {
			t.Errorf("examine: %+v, %v, want a usable server", e, err)
		}
	}
	if held, err := open(t, srv, *o).List(t.Context(), ""); err != nil || len(held) > 0 {
		t.Errorf("list after the doctor: %v, %v, want no lock", held, err)
	}
	// A server that does not look at resourceVersions.
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			fmt.Fprint(w, `{"metadata":{"uid":"7","resourceVersion":"7"}}`)
		}
		return r.Method == http.MethodPut
	})
	if e, err := kubernetesstore.Examine(t.Context(), "kubernetes://"+srv.namespace, o); err != nil || !errors.Is(e.Unusable, recordstore.ErrRefused) || !strings.Contains(e.Unusable.Error(), "does not heed resourceVersion") {
		t.Errorf("examine a server that ignores versions: %+v, %v, want that it is unusable", e, err)
	}
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"status":{"allowed":false}}`)
		} else {
			failure(w, http.StatusForbidden, "Forbidden")
		}
		return true
	})
	if e, err := kubernetesstore.Examine(t.Context(), "kubernetes://"+srv.namespace, o); err != nil || e.Unusable == nil || len(e.Missing) != 5 {
		t.Errorf("examine without rights: %+v, %v, want that all are missing", e, err)
	}
}
