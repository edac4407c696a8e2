package objectstest

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/idle"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// Conforms runs the suite.
func (k Kind) Conforms(t *testing.T) { k.conforms(t, k.Start(t, false).Direct) }

func (k Kind) conforms(t *testing.T, endpoint string) {
	o := Options{}
	second := func(t *testing.T) *store.Store { return k.Store(t, endpoint, o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Prefix = newPrefix()
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

// Requests tests what locks cost in requests.
func (k Kind) Requests(t *testing.T) {
	srv := k.Start(t, false)
	expect := func(what string, reads, writes int) {
		t.Helper()
		if n := srv.Taken(); n[http.MethodGet] != reads || n[k.Method] != writes || len(n) > 2 {
			t.Errorf("%s: %v requests, want %d GET and %d %s", what, n, reads, writes, k.Method)
		}
	}
	srv.Taken()
	k.Store(t, srv.URL, Options{})
	expect("the first open", 0, 4)
	s := k.Store(t, srv.URL, Options{})
	expect("each further open", 0, 2)
	for i := range 3 {
		l := Lease("a", time.Minute)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		expect("acquire", []int{1, 0, 0}[i], 1)
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Fatal(err)
		}
		expect("renew", 0, 1)
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Fatal(err)
		}
		expect("release", 0, 1)
	}
	if all, err := s.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Fatal(all, err)
	}
	expect("list one lock", 2, 0)
}

// IdleCost tests what an idle holder and an idle waiter cost in requests.
func (k Kind) IdleCost(t *testing.T) {
	srv := k.Start(t, false)
	const ttl, poll = 3 * time.Second, 200 * time.Millisecond
	holds, waits := door.Open(t, srv.Door), door.Open(t, srv.Door)
	holder, waiter := k.Store(t, holds.URL, Options{Poll: poll}), k.Store(t, waits.URL, Options{Poll: poll})
	_, by, passed := idle.Cost(t, holder, waiter, ttl, func() [2]map[string]int { return [2]map[string]int{holds.Taken(), waits.Taken()} })
	// Each refreshes in a third of the TTL. It writes twice, and reads once more, if the other one
	// has written meanwhile.
	thirds, looks := int(passed/(ttl/3))+2, int(passed/(poll*3/4))+2
	for i, most := range []int{thirds, thirds + looks} {
		if n := by[i]; n[k.Method] > 2*thirds || n[http.MethodGet] > most || len(n) > 2 {
			t.Errorf("the %s has made %v requests in %v, want at most %d %s and %d GET", []string{"holder", "waiter"}[i], n, passed, 2*thirds, k.Method, most)
		}
	}
	t.Logf("in %v with a TTL of %v: holder %v, waiter %v", passed.Round(time.Millisecond), ttl, by[0], by[1])
}

// IgnoredConditionsAreRefused tests that Open refuses servers that do not heed conditions.
func (k Kind) IgnoredConditionsAreRefused(t *testing.T) {
	srv := k.Start(t, false)
	for says, ignore := range k.Ignore {
		srv.Answer(ignore)
		o := Options{Prefix: newPrefix()}
		for range 2 { // the second time the object of the probe is there
			s, err := k.Open(t.Context(), srv.URL, o)
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), says) {
				t.Errorf("open: %v, want a refusal that says %q", err, says)
			}
		}
	}
}

// RefusalsAreFinal tests that a refusal, such as for a missing right, is returned at once and with
// the reason.
func (k Kind) RefusalsAreFinal(t *testing.T) {
	srv := k.Start(t, false)
	s := k.Store(t, srv.URL, Options{})
	for _, f := range k.Final {
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool { k.Fail(w, f); return true })
		srv.Taken()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: Lease(f.Code, time.Minute)})
		if n := srv.Taken(); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), f.Code) || n[http.MethodGet] != 1 || n[k.Method] != 0 {
			t.Errorf("acquire: %v after %v requests, want one request and an error with %s", err, n, f.Code)
		}
	}
}

// DeletedObjects tests that tokens go on rising if somebody deletes the objects.
func (k Kind) DeletedObjects(t *testing.T) {
	srv := k.Start(t, false)
	date := func() string {
		defer http.DefaultClient.CloseIdleConnections()
		res, err := http.Get(srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.Header.Get("Date")
	}
	s, other := k.Store(t, srv.Direct, Options{}), k.Store(t, srv.Direct, Options{})
	var last fence.Token
	for range 3 {
		for _, s := range []*store.Store{s, other} {
			l := Lease("a", time.Minute)
			g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
			if err != nil || g.Token <= last {
				t.Fatalf("token %v, %v after %v, want a larger one", g.Token, err, last)
			}
			last = g.Token
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
		}
		was := date()
		if err := k.ByHand(t, srv.Direct).Delete(t.Context(), "leasehold/61"); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the server's clock shows the next second", func() bool { return date() != was })
		if held, err := s.List(t.Context(), ""); err != nil || len(held) > 0 {
			t.Errorf("list after the object was deleted: %v, %v", held, err)
		}
	}
}

// DeadHolder tests that a client that is gone holds the lock for its TTL, and that a waiter then
// gets it.
func (k Kind) DeadHolder(t *testing.T) {
	srv := k.Start(t, false)
	dead, other := k.Store(t, srv.Direct, Options{}), k.Store(t, srv.Direct, Options{})
	l := Lease("job", time.Second)
	began := time.Now()
	if _, err := dead.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Wait(t.Context(), store.WaitRequest{Lease: Lease("job", time.Minute)}, nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < l.TTL {
		t.Errorf("granted to another owner %v after a lease of %v", took, l.TTL)
	}
}

// DeadHolderIsSeenByNewClients is the test of that name for servers of objects.
func (k Kind) DeadHolderIsSeenByNewClients(t *testing.T) {
	srv := k.Start(t, false)
	DeadHolderIsSeenByNewClients(t, func(skew time.Duration) *store.Store { return k.Store(t, srv.Direct, Options{Skew: skew}) })
}

// DeadHolderIsSeenByNewClients tests that with a skew, a process that tries once gets the lock of a
// dead holder, though each try is made by a new client, and that without it none does.
func DeadHolderIsSeenByNewClients(t *testing.T, open func(skew time.Duration) *store.Store) {
	const skew = 700 * time.Millisecond
	l := Lease("job", 500*time.Millisecond) // dates may be in seconds: a client without skew would see its end a second earlier
	began := time.Now()
	if _, err := open(skew).Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	try := func(skew time.Duration) error {
		_, err := open(skew).Acquire(t.Context(), store.AcquireRequest{Lease: Lease("job", time.Minute)})
		return err
	}
	for {
		if time.Since(began) > 2*l.TTL {
			if err := try(0); !errors.Is(err, store.ErrBusy) {
				t.Fatalf("a client that uses no dates and sees the lease for the first time: %v, want busy", err)
			}
		}
		err := try(skew)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrBusy) || time.Since(began) > time.Minute {
			t.Fatalf("try: %v, want busy", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if took := time.Since(began); took < l.TTL {
		t.Errorf("granted to another owner %v after a lease of %v", took, l.TTL)
	}
}

// Lists tests that lists have all locks that are held, also if there are several pages, and
// nothing else.
func (k Kind) Lists(t *testing.T) {
	srv := k.Start(t, false)
	const n, page = 30, 7
	srv.Answer(func(_ http.ResponseWriter, r *http.Request) bool { k.Page(r, page); return false })
	s := k.Store(t, srv.URL, Options{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: Lease(fmt.Sprintf("list/%04d", i), time.Hour)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	k.Store(t, srv.URL, Options{Prefix: "leasehold/more"}) // writes an object below
	other := k.Store(t, srv.URL, Options{})
	srv.Taken()
	held, err := other.List(t.Context(), "list/")
	if err != nil || len(held) != n {
		t.Errorf("%d locks, %v, want %d", len(held), err, n)
	}
	if got := srv.Taken()[http.MethodGet] - n; got < n/page {
		t.Errorf("%d pages, want at least %d", got, n/page)
	}
}

// ListsThatAreBehind tests that locks do not need lists: one that is behind shows fewer locks, and
// nobody gets one because of it.
func (k Kind) ListsThatAreBehind(t *testing.T) {
	srv := k.Start(t, false)
	s, other := k.Store(t, srv.URL, Options{}), k.Store(t, srv.URL, Options{})
	srv.Answer(k.Behind)
	l := Lease("a", time.Minute)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	if all, err := other.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("list: %v, %v, want the empty one of the server", all, err)
	}
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: Lease("a", time.Minute)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire a lock that no list shows: %v, want busy", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
}

// tlsVar has the URL of the server for the other process of TLS.
const tlsVar = "LEASEHOLD_TEST_TLS"

// TLS tests that a server whose certificate the system does not trust is refused, and is trusted if
// the file that SSL_CERT_FILE names has the certificate. A process reads that file once, so another
// one runs the test again, and opens the store. prepare returns what that has in its environment;
// secrets there contain "hush".
func (k Kind) TLS(t *testing.T, prepare func(s *Server) (env []string)) {
	if url := os.Getenv(tlsVar); url != "" {
		if _, err := k.Store(t, url, Options{}).Acquire(t.Context(), store.AcquireRequest{Lease: Lease("a", time.Minute)}); err != nil {
			t.Error(err)
		}
		return
	}
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE is not read by " + runtime.GOOS)
	}
	srv := k.Start(t, false)
	d := door.Open(t, srv.Door)
	front := httptest.NewUnstartedServer(d)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	file := t.TempDir() + "/ca.pem"
	open := func() ([]byte, error) {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(append(os.Environ(), prepare(srv)...), tlsVar+"="+front.URL, "SSL_CERT_FILE="+file)
		return c.CombinedOutput()
	}
	out, err := open()
	if err == nil || !strings.Contains(string(out), "trust its certificate in the file that SSL_CERT_FILE names") || strings.Contains(string(out), "hush") {
		t.Errorf("a certificate that nobody trusts: %v, want a refusal that says what to do, and no secret\n%s", err, out)
	}
	if n := d.Taken(); len(n) > 0 {
		t.Errorf("%v requests to a server that nobody trusts", n)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := open(); err != nil {
		t.Errorf("a certificate that the file has: %v\n%s", err, out)
	}
}

// Examined tests what the doctor is told.
func (k Kind) Examined(t *testing.T) {
	srv := k.Start(t, false)
	e, err := k.Examine(t.Context(), srv.URL, 20*time.Second)
	if want := k.Store(t, srv.URL, Options{}).Caps().Class; err != nil || e.Unusable != nil || e.Class != want || !strings.Contains(e.Node, srv.URL) {
		t.Errorf("examine: %+v, %v, want a usable server of class %v", e, err, want)
	}
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool { k.Fail(w, k.Final[0]); return true })
	if e, err := k.Examine(t.Context(), srv.URL, 20*time.Second); err != nil || e.Unusable == nil || !strings.Contains(e.Unusable.Error(), k.Final[0].Code) {
		t.Errorf("examine without rights: %+v, %v, want that it is unusable", e, err)
	}
	srv.Close()
	if e, err := k.Examine(t.Context(), srv.URL, time.Second); err != nil || e.Unusable == nil {
		t.Errorf("examine a port at which nothing listens: %+v, %v, want that it is unusable", e, err)
	}
}
