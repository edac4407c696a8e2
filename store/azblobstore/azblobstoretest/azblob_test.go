package azblobstoretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/contest"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/idle"
	"github.com/leasehold-dev/leasehold/internal/testenv/torturetest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/azblobstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

func TestConforms(t *testing.T) {
	srv := start(t)
	o := azblobstore.Options{}
	second := func(t *testing.T) *store.Store { return open(t, srv, o) }
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
			failure(w, http.StatusInternalServerError, "InternalError")
		}
		return errs
	})
	o := azblobstore.Options{}
	second := func(t *testing.T) *store.Store { return open(t, srv, o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Prefix = newPrefix()
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

// What locks cost in requests, which docs/azure.md tells.
func TestRequests(t *testing.T) {
	srv := start(t)
	expect := func(what string, gets, posts int) {
		t.Helper()
		if n := srv.Taken(); n[http.MethodGet] != gets || n[http.MethodPut] != posts || len(n) > 2 {
			t.Errorf("%s: %v requests, want %d GET and %d PUT", what, n, gets, posts)
		}
	}
	open(t, srv, azblobstore.Options{})
	expect("the first open", 0, 4)
	s := open(t, srv, azblobstore.Options{})
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

// An idle holder and an idle waiter make as many requests as docs/azure.md says.
func TestIdleCost(t *testing.T) {
	srv := start(t)
	const ttl, poll = 3 * time.Second, 200 * time.Millisecond
	o := azblobstore.Options{Poll: poll}
	_, n, passed := idle.Cost(t, open(t, srv, o), open(t, srv, o), ttl, srv.Taken)
	// Each refreshes in a third of the TTL. It writes twice, and reads once more, if the other one
	// has written meanwhile.
	thirds, looks := int(passed/(ttl/3))+2, int(passed/(poll*3/4))+2
	if n[http.MethodPut] > 2*2*thirds || n[http.MethodGet] > 2*thirds+looks || len(n) > 2 {
		t.Errorf("%v requests in %v, want at most %d PUT and %d GET", n, passed, 2*2*thirds, 2*thirds+looks)
	}
	t.Logf("in %v with a TTL of %v: %v", passed.Round(time.Millisecond), ttl, n)
}

// A server that ignores conditions is refused.
func TestIgnoredConditionsAreRefused(t *testing.T) {
	srv := start(t)
	for range 2 { // the second time the object of the probe is there
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if isWrite(r) { // a write without conditions would have another signature
				w.Header().Set("ETag", `"0"`)
				w.WriteHeader(http.StatusCreated)
			}
			return isWrite(r)
		})
		s, err := azblobstore.Open(t.Context(), container, &azblobstore.Options{Account: account, Key: key, Endpoint: srv.url})
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "does not heed") {
			t.Errorf("open: %v, want a refusal", err)
		}
	}
}

// A lock whose answer was lost is a lock, and not one that another owner has. Errors of the server are no
// refusals.
func TestLostAnswersAndServerErrors(t *testing.T) {
	srv := start(t)
	s := open(t, srv, azblobstore.Options{})
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
	for status, reason := range map[int]string{http.StatusTooManyRequests: "ServerBusy", http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "InternalError"} {
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
	s := open(t, srv, azblobstore.Options{})
	for status, reason := range map[int]string{http.StatusForbidden: "AuthorizationPermissionMismatch", http.StatusUnauthorized: "InvalidAuthenticationInfo", http.StatusNotFound: "ContainerNotFound", http.StatusPreconditionFailed: "LeaseIdMissing"} {
		srv.Answer(func(w http.ResponseWriter, r *http.Request) bool { failure(w, status, reason); return true })
		srv.Taken()
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(reason, time.Minute)})
		if n := srv.Taken(); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), reason) || n[http.MethodGet] != 1 || n[http.MethodPut] != 0 {
			t.Errorf("acquire: %v after %v requests, want one request and an error with %s", err, n, reason)
		}
	}
	if s, err := azblobstore.Open(t.Context(), "other", &azblobstore.Options{Account: account, Key: key, Endpoint: start(t).url}); !errors.Is(err, recordstore.ErrRefused) {
		t.Errorf("a container that there is not: %v, %v, want a refusal", s, err)
	}
}

// If somebody deletes the objects, tokens go on rising.
func TestDeletedObjects(t *testing.T) {
	srv := start(t)
	s, other := open(t, srv, azblobstore.Options{}), open(t, srv, azblobstore.Options{})
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
		if status := srv.signed(t, http.MethodDelete, "leasehold/61", ""); status != http.StatusAccepted {
			t.Fatalf("delete: %d", status)
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
		clients = append(clients, open(t, srv, azblobstore.Options{Timeout: 5 * time.Second}))
	}
	lose := func(r *http.Request) bool { return isWrite(r) && mathrand.IntN(20) == 0 }
	srv.Lose(lose)
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		switch mathrand.IntN(100) {
		case 0:
			failure(w, http.StatusInternalServerError, "InternalError")
		case 1:
			failure(w, http.StatusServiceUnavailable, "InternalError")
		case 2:
			failure(w, http.StatusTooManyRequests, "ServerBusy")
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
// docs/azure.md says.
func TestTorture(t *testing.T) {
	t.Parallel()
	const ttl, poll = 4 * time.Second, 100 * time.Millisecond
	url := "azblob://" + container + "/torture?poll=" + poll.String() + "&account=" + account + "&endpoint=" + start(t).url
	torturetest.Run(t, url, ttl, 16*poll*5/4+4*time.Second, nil, "AZURE_STORAGE_KEY="+key)
}

// With Skew, a process that tries once gets the lock of a dead holder, though each try is made
// by a new client; without it, none does.
func TestDeadHolderIsSeenByNewClients(t *testing.T) {
	t.Parallel()
	srv := start(t)
	o := azblobstore.Options{Skew: 700 * time.Millisecond}
	l := lease("job", 500*time.Millisecond)
	began := time.Now()
	if _, err := open(t, srv, o).Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	try := func(o azblobstore.Options) error {
		_, err := open(t, srv, o).Acquire(t.Context(), store.AcquireRequest{Lease: lease("job", time.Minute)})
		return err
	}
	for {
		if time.Since(began) > 2*l.TTL {
			if err := try(azblobstore.Options{}); !errors.Is(err, store.ErrBusy) {
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

// token is a credential that counts how often it was asked.
type token struct{ asked int }

func (c *token) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	c.asked++
	return azcore.AccessToken{Token: "hush", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// Credentials are sent to nobody whose certificate is not trusted, tokens without TLS to nobody, and
// none is in an error. A wrong key is refused.
func TestCredentials(t *testing.T) {
	srv := start(t)
	t.Setenv("AZURE_STORAGE_KEY", "")
	var sent []string
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		failure(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
	}))
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	refused := func(what string, o azblobstore.Options, says string) {
		t.Helper()
		o.Account, o.Timeout = account, 2*time.Second
		s, err := azblobstore.Open(t.Context(), container, &o)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v, want a refusal that says %q", what, err, says)
		}
	}
	asked := &token{}
	refused("a token without TLS", azblobstore.Options{Credential: asked, Endpoint: srv.url}, "TLS")
	refused("a certificate that nobody trusts", azblobstore.Options{Credential: asked, Endpoint: front.URL}, "certificate")
	if len(sent) > 0 {
		t.Errorf("sent %q to a server that nobody trusts", sent)
	}
	refused("a key that is none", azblobstore.Options{Key: "hush", Endpoint: srv.url + "/"}, "")
	refused("another key", azblobstore.Options{Key: "aHVzaA==", Endpoint: srv.url}, "403")
	t.Setenv("AZURE_STORAGE_KEY", key)
	s, err := store.Open(t.Context(), "azblob://"+container+"?account="+account+"&endpoint="+srv.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// Lists have all pages.
func TestLists(t *testing.T) {
	srv := start(t)
	s := open(t, srv, azblobstore.Options{})
	for _, name := range []string{"a", "b"} { // in hexadecimal, 61 and 62
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(name, time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		q := r.URL.Query()
		if q.Get("comp") != "list" {
			return false
		}
		page, next := "61", "second"
		if q.Get("marker") == next {
			page, next = "62", ""
		}
		fmt.Fprintf(w, "\xef\xbb\xbf<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs><Blob><Name>leasehold/%s</Name></Blob><Blob><Name>leasehold/probe</Name></Blob></Blobs><NextMarker>%s</NextMarker></EnumerationResults>", page, next)
		return true
	})
	if held, err := s.List(t.Context(), ""); err != nil || len(held) != 2 {
		t.Errorf("list: %v, %v, want two locks", held, err)
	}
}

// What the doctor is told.
func TestExamine(t *testing.T) {
	srv := start(t)
	e, err := azblobstore.Examine(t.Context(), container, &azblobstore.Options{Account: account, Key: key, Endpoint: srv.url})
	if err != nil || e.Unusable != nil || e.Class != store.Efficiency || !strings.Contains(e.Node, srv.url) {
		t.Errorf("examine: %+v, %v, want a usable server", e, err)
	}
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		failure(w, http.StatusForbidden, "AuthorizationPermissionMismatch")
		return true
	})
	if e, err := azblobstore.Examine(t.Context(), container, &azblobstore.Options{Account: account, Key: key, Endpoint: srv.url}); err != nil || e.Unusable == nil {
		t.Errorf("examine without rights: %+v, %v, want that it is unusable", e, err)
	}
}

func TestParseURL(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "acc")
	for url, want := range map[string]azblobstore.Options{
		"azblob://my-container":                      {Prefix: "leasehold", Account: "acc"},
		"azblob://b-12/app/locks/?account=other1":    {Prefix: "app/locks", Account: "other1"},
		"azblob://bbb?endpoint=http://[::1]:900/acc": {Prefix: "leasehold", Account: "acc", Endpoint: "http://[::1]:900/acc"},
		"azblob://bbb?skew=1m&poll=5s&timeout=9s":    {Prefix: "leasehold", Account: "acc", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 9 * time.Second},
	} {
		c, o, err := azblobstore.ParseURL(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if *o != want || !strings.HasPrefix(url[9:], c) {
			t.Errorf("%s: container %q, %+v, want %+v", url, c, *o, want)
		}
	}
	for _, url := range []string{"", "azblob:", "azblob://", "s3://aaa", "azblob://Container", "azblob://a--b", "azblob://me:hush@bbb", "azblob://bbb/a//b", "azblob://bbb?x=1", "azblob://bbb?skew=5", "azblob://bbb?account=A", "azblob://bbb?endpoint=https://k:hush@h", "azblob://bbb?skew=1s&skew=2s", "azblob://bbb#x"} {
		if _, _, err := azblobstore.ParseURL(url); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
