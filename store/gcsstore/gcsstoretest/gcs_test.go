package gcsstoretest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/idle"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestConforms(t *testing.T) {
	srv := start(t)
	o := gcsstore.Options{}
	second := func(t *testing.T) *store.Store { return open(t, srv.URL, o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Prefix = newPrefix()
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

// The suite holds while answers are lost and the server errs.
func TestConformsUnderFaults(t *testing.T) {
	t.Parallel()
	srv := start(t)
	lose := func(*http.Request) bool { return mathrand.IntN(20) == 0 }
	srv.Lose(lose)
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		errs := mathrand.IntN(30) == 0
		if errs {
			failure(w, http.StatusInternalServerError, "backendError")
		}
		return errs
	})
	o := gcsstore.Options{}
	second := func(t *testing.T) *store.Store { return open(t, srv.URL, o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Prefix = newPrefix()
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

// What locks cost in requests, which docs/gcs.md tells.
func TestRequests(t *testing.T) {
	srv := start(t)
	expect := func(what string, gets, posts int) {
		t.Helper()
		if n := srv.Taken(); n[http.MethodGet] != gets || n[http.MethodPost] != posts || len(n) > 2 {
			t.Errorf("%s: %v requests, want %d GET and %d POST", what, n, gets, posts)
		}
	}
	open(t, srv.URL, gcsstore.Options{})
	expect("the first open", 0, 4)
	s := open(t, srv.URL, gcsstore.Options{})
	expect("each further open", 0, 2)
	for i := range 3 {
		l := lease("a", time.Minute)
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

// An idle holder and an idle waiter make as many requests as docs/gcs.md says.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	srv := start(t)
	const ttl, poll = 3 * time.Second, 200 * time.Millisecond
	o := gcsstore.Options{Poll: poll}
	_, n, passed := idle.Cost(t, open(t, srv.URL, o), open(t, srv.URL, o), ttl, srv.Taken)
	// Each refreshes in a third of the TTL. It writes twice, and reads once more, if the other one
	// has written meanwhile.
	thirds, looks := int(passed/(ttl/3))+2, int(passed/(poll*3/4))+2
	if n[http.MethodPost] > 2*2*thirds || n[http.MethodGet] > 2*thirds+looks || len(n) > 2 {
		t.Errorf("%v requests in %v, want at most %d POST and %d GET", n, passed, 2*2*thirds, 2*thirds+looks)
	}
	t.Logf("in %v with a TTL of %v: %v", passed.Round(time.Millisecond), ttl, n)
}

// A server that ignores generations is refused.
func TestIgnoredGenerationsAreRefused(t *testing.T) {
	srv := start(t)
	for range 2 { // the second time the object of the probe is there
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			q := r.URL.Query()
			q.Del("ifGenerationMatch")
			r.URL.RawQuery = q.Encode()
			return false
		})
		s, err := gcsstore.Open(t.Context(), bucket, &gcsstore.Options{Endpoint: srv.URL})
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "does not heed") {
			t.Errorf("open: %v, want a refusal", err)
		}
	}
}

// A lock whose answer was lost is a lock, and not one that another owner has. An object that was
// replaced less than a second ago is replaced when the server lets us, and errors of the server
// are no refusals.
func TestLostAnswersAndServerErrors(t *testing.T) {
	srv := start(t)
	s := open(t, srv.URL, gcsstore.Options{})
	pair := func(name string, trouble func()) {
		t.Helper()
		l := lease(name, time.Minute)
		trouble()
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
			t.Errorf("%s: acquire: %v", name, err)
		}
		trouble()
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
			t.Errorf("%s: release: %v", name, err)
		}
	}
	for _, name := range []string{"new", "new", "again"} {
		pair(name, func() {
			srv.Lose(door.Once(isWrite))
		})
	}
	for status, reason := range map[int]string{http.StatusTooManyRequests: "rateLimitExceeded", http.StatusInternalServerError: "backendError", http.StatusServiceUnavailable: "backendError"} {
		for _, which := range []func(*http.Request) bool{isWrite, func(r *http.Request) bool { return !isWrite(r) }} {
			pair(reason, func() {
				pick := door.Once(which)
				srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
					if pick(r) {
						failure(w, status, reason)
						return true
					}
					return false
				})
			})
		}
	}
}

// A refusal, such as for a missing right, is returned at once and with the reason.
func TestRefusalsAreFinal(t *testing.T) {
	srv := start(t)
	s := open(t, srv.URL, gcsstore.Options{})
	for status, reason := range map[int]string{http.StatusForbidden: "forbidden", http.StatusUnauthorized: "authError", http.StatusBadRequest: "invalid"} {
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool { failure(w, status, reason); return true })
		srv.Taken()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(reason, time.Minute)})
		if n := srv.Taken(); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), reason) || n[http.MethodGet] != 1 || n[http.MethodPost] != 0 {
			t.Errorf("acquire: %v after %v requests, want one request and an error with %s", err, n, reason)
		}
	}
	if s, err := gcsstore.Open(t.Context(), "other", &gcsstore.Options{Endpoint: start(t).URL}); !errors.Is(err, recordstore.ErrRefused) {
		t.Errorf("a bucket that there is not: %v, %v, want a refusal", s, err)
	}
}

// If somebody deletes the objects, tokens go on rising.
func TestDeletedObjects(t *testing.T) {
	srv := start(t)
	s, other := open(t, srv.URL, gcsstore.Options{}), open(t, srv.URL, gcsstore.Options{})
	var last fence.Token
	for range 2 {
		for _, s := range []*store.Store{s, other} {
			l := lease("a", time.Minute)
			g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
			if err != nil || g.Token <= last {
				t.Fatalf("token %v, %v after %v, want a larger one", g.Token, err, last)
			}
			last = g.Token
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
		}
		if err := srv.emulator.Client().Bucket(bucket).Object("leasehold/61").Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Dates have seconds.
		began := time.Now().Truncate(time.Second)
		for time.Now().Truncate(time.Second).Equal(began) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// Clients contend for a lock while answers are lost and the server errs: no two hold the lock at
// once, tokens rise, and each client gets it.
func TestContest(t *testing.T) {
	srv := start(t)
	var clients []store.Engine
	for range 6 {
		clients = append(clients, open(t, srv.URL, gcsstore.Options{Timeout: 5 * time.Second}))
	}
	lose := func(r *http.Request) bool { return isWrite(r) && mathrand.IntN(20) == 0 }
	srv.Lose(lose)
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch mathrand.IntN(100) {
		case 0:
			failure(w, http.StatusInternalServerError, "backendError")
		case 1:
			failure(w, http.StatusServiceUnavailable, "backendError")
		case 2:
			failure(w, http.StatusTooManyRequests, "rateLimitExceeded")
		default:
			return false
		}
		return true
	})
	c := &contest.Contest{Name: "contested", TTL: 4 * time.Second}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, s := range clients {
		wg.Go(func() { c.Contend(ctx, t, s) })
	}
	c.GoesOn(t, "with lost answers", 2*time.Minute, clients...)
	cancel()
	wg.Wait()
}

// Processes that compete for locks of all kinds, and are stopped and killed meanwhile, never hold
// one at the same time, are told of losses in time, and wait for a free lock no longer than
// docs/gcs.md says. The first two hold as well while the server is killed again and again.
func TestTorture(t *testing.T) {
	const ttl, poll = 4 * time.Second, 100 * time.Millisecond
	url := func(endpoint string) string {
		return "gs://" + bucket + "/torture?poll=" + poll.String() + "&endpoint=" + endpoint
	}
	t.Run("undisturbed server", func(t *testing.T) {
		t.Parallel()
		torturetest.Run(t, url(start(t).URL), ttl, 16*poll*5/4+4*time.Second, nil)
	})
	t.Run("killed server", func(t *testing.T) {
		t.Parallel()
		srv := startDurable(t)
		torturetest.Run(t, url(srv.url()), ttl, 0, func(ctx context.Context) {
			for ctx.Err() == nil {
				clock.Sleep(ctx, 2*time.Second)
				srv.process.Kill()
				clock.Sleep(ctx, time.Second)
				srv.start()
			}
		})
	})
}

// With Skew, a process that tries once gets the lock of a dead holder, though each try is made
// by a new client; without it, none does.
func TestDeadHolderIsSeenByNewClients(t *testing.T) {
	t.Parallel()
	srv := start(t)
	o := gcsstore.Options{Skew: 700 * time.Millisecond}
	l := lease("job", 500*time.Millisecond)
	began := time.Now()
	if _, err := open(t, srv.URL, o).Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	try := func(o gcsstore.Options) error {
		_, err := open(t, srv.URL, o).Acquire(t.Context(), store.AcquireRequest{Lease: lease("job", time.Minute)})
		return err
	}
	for {
		if time.Since(began) > 2*l.TTL {
			if err := try(gcsstore.Options{}); !errors.Is(err, store.ErrBusy) {
				t.Fatalf("a client that uses no dates and sees the lease for the first time: %v, want busy", err)
			}
		}
		err := try(o)
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

// Credentials come from the file that the environment names, are sent over TLS alone, and are in
// no error.
func TestCredentials(t *testing.T) {
	srv := start(t)
	var sent []string
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "hush", "token_type": "Bearer", "expires_in": 3600}`)
			return
		}
		sent = append(sent, r.Header.Get("Authorization"))
		srv.ServeHTTP(w, r)
	}))
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	file := t.TempDir() + "/key.json"
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	refused := func(what, url, says string) {
		t.Helper()
		s, err := store.Open(t.Context(), url, nil)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want an error that says %q", what, err, says)
		}
	}
	url := "gs://" + bucket + "?timeout=2s&endpoint="
	refused("without credentials", url+front.URL, "GOOGLE_APPLICATION_CREDENTIALS")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "app@example.com", "token_uri": srv.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token": "hush", "token_type": "Bearer", "expires_in": 3600}`)
			return true
		}
		return false
	})
	refused("a certificate that nobody trusts", url+front.URL, "certificate")
	s, err := store.Open(t.Context(), url+srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if len(sent) > 0 {
		t.Errorf("sent %q to a server that nobody trusts", sent)
	}
}

// What the doctor is told.
func TestExamine(t *testing.T) {
	srv := start(t)
	e, err := gcsstore.Examine(t.Context(), bucket, &gcsstore.Options{Endpoint: srv.URL})
	if err != nil || e.Unusable != nil || e.Class != store.Efficiency || !strings.Contains(e.Node, srv.URL) {
		t.Errorf("examine: %+v, %v, want a usable server", e, err)
	}
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		failure(w, http.StatusForbidden, "forbidden")
		return true
	})
	if e, err := gcsstore.Examine(t.Context(), bucket, &gcsstore.Options{Endpoint: srv.URL}); err != nil || e.Unusable == nil {
		t.Errorf("examine without rights: %+v, %v, want that it is unusable", e, err)
	}
}

func TestParseURL(t *testing.T) {
	for url, want := range map[string]gcsstore.Options{
		"gs://my-bucket":                     {Prefix: "leasehold"},
		"gs://b-1/app/locks/":                {Prefix: "app/locks"},
		"gs://bb?endpoint=http://[::1]:900":  {Prefix: "leasehold", Endpoint: "http://[::1]:900"},
		"gs://bb?skew=1m&poll=5s&timeout=9s": {Prefix: "leasehold", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 9 * time.Second},
	} {
		b, o, err := gcsstore.ParseURL(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if *o != want || !strings.HasPrefix(url[5:], b) {
			t.Errorf("%s: bucket %q, %+v, want %+v", url, b, *o, want)
		}
	}
	for _, url := range []string{"", "gs:", "gs://", "s3://a", "gs://Bucket", "gs://me:hush@bb", "gs://bb/a//b", "gs://bb/../x", "gs://bb?x=1", "gs://bb?skew=5", "gs://bb?endpoint=host", "gs://bb?endpoint=https://k:hush@h", "gs://bb?skew=1s&skew=2s", "gs://bb#x", "gs://" + strings.Repeat("b", 223)} {
		if _, _, err := gcsstore.ParseURL(url); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
