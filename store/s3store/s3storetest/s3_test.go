package s3storetest

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/idle"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/s3store"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("p%d", prefixes.Add(1)) }

func TestConforms(t *testing.T) {
	srv := start(t)
	o := s3store.Options{Durable: true}
	second := func(t *testing.T) *store.Store { return open(t, srv.url(), o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Prefix = newPrefix()
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

// The suite holds while answers are lost and the server errs.
func TestConformsUnderFaults(t *testing.T) {
	t.Parallel()
	d := openDoor(t, start(t))
	lose := func(r *http.Request) bool { return rand.IntN(20) == 0 }
	d.lose.Store(&lose)
	err := func(w http.ResponseWriter, r *http.Request) bool {
		switch n := rand.IntN(100); {
		case n < 3:
			failure(w, http.StatusInternalServerError, "InternalError")
		case n < 6 && isPut(r):
			failure(w, http.StatusConflict, "ConditionalRequestConflict")
		default:
			return false
		}
		return true
	}
	d.answer.Store(&err)
	o := s3store.Options{Durable: true}
	second := func(t *testing.T) *store.Store { return open(t, d.URL, o) }
	storetest.Run(t, func(t *testing.T) *store.Store {
		o.Prefix = newPrefix()
		return second(t)
	}, storetest.Options{Second: second, ShortTTL: 800 * time.Millisecond, Observed: true})
}

// What locks cost in requests, which docs/s3.md tells.
func TestRequests(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	expect := func(what string, gets, puts int) {
		t.Helper()
		if n := d.taken(); n[http.MethodGet] != gets || n[http.MethodPut] != puts || len(n) > 2 {
			t.Errorf("%s: %v requests, want %d GET and %d PUT", what, n, gets, puts)
		}
	}
	open(t, d.URL, s3store.Options{})
	expect("the first open", 0, 4)
	s := open(t, d.URL, s3store.Options{})
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
	if _, err := s.List(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	expect("list one lock", 2, 0)
}

// An idle holder and an idle waiter make as many requests as docs/s3.md says.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	srv := start(t)
	holds, waits := openDoor(t, srv), openDoor(t, srv)
	const ttl, poll = 3 * time.Second, 200 * time.Millisecond
	holder, waiter := open(t, holds.URL, s3store.Options{}), open(t, waits.URL, s3store.Options{Poll: poll})
	_, by, passed := idle.Cost(t, holder, waiter, ttl, func() [2]map[string]int { return [2]map[string]int{holds.taken(), waits.taken()} })
	// Each refreshes in a third of the TTL. It writes twice, and reads once more, if the other one
	// has written meanwhile.
	thirds, looks := int(passed/(ttl/3))+2, int(passed/(poll*3/4))+2
	for who, n := range map[string]map[string]int{"holder": by[0], "waiter": by[1]} {
		most := thirds
		if who == "waiter" {
			most += looks
		}
		if n["PUT"] > 2*thirds || n["GET"] > most || len(n) > 2 {
			t.Errorf("the %s has made %v requests in %v, want at most %d PUT and %d GET", who, n, passed, 2*thirds, most)
		}
	}
	t.Logf("in %v with a TTL of %v: holder %v, waiter %v", passed.Round(time.Millisecond), ttl, by[0], by[1])
}

// Locks do not need lists: one that is behind shows fewer locks, and nobody gets one because of it.
func TestListsThatAreBehind(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	behind := func(w http.ResponseWriter, r *http.Request) bool {
		listed := r.URL.Query().Has("list-type")
		if listed {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, "<ListBucketResult></ListBucketResult>")
		}
		return listed
	}
	s, other := open(t, d.URL, s3store.Options{}), open(t, d.URL, s3store.Options{})
	d.answer.Store(&behind)
	l := lease("a", time.Minute)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	if all, err := other.List(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("list: %v, %v, want the empty one of the server", all, err)
	}
	if _, err := other.Acquire(t.Context(), store.AcquireRequest{Lease: lease("a", time.Minute)}); !errors.Is(err, store.ErrBusy) {
		t.Errorf("acquire a lock that no list shows: %v, want busy", err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
}

// If somebody deletes the objects, tokens go on rising.
func TestDeletedObjects(t *testing.T) {
	srv := start(t)
	s, other := open(t, srv.url(), s3store.Options{}), open(t, srv.url(), s3store.Options{})
	var last fence.Token
	var was string
	for range 3 {
		for _, s := range []*store.Store{s, other} {
			l := lease("a", time.Minute)
			g, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l})
			if err != nil || g.Token <= last {
				t.Fatalf("token %v, %v after %v, want a larger one", g.Token, err, last)
			}
			last = g.Token
			was = srv.date()
			if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := srv.client().DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String("leasehold/61")}); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the server's clock shows the next second", func() bool { return srv.date() != was })
		if held, err := s.List(t.Context(), ""); err != nil || len(held) > 0 {
			t.Errorf("list after the object was deleted: %v, %v", held, err)
		}
	}
}

// Lists have all locks that are held, also if there are several pages, and nothing else.
func TestLists(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	d.page.Store(7)
	s := open(t, d.URL, s3store.Options{})
	const n = 30
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: lease(fmt.Sprintf("list/%04d", i), time.Hour)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	open(t, srv.url(), s3store.Options{Prefix: "leasehold/more"}) // writes an object below
	other := open(t, d.URL, s3store.Options{})
	d.taken()
	held, err := other.List(t.Context(), "list/")
	if err != nil || len(held) != n {
		t.Errorf("%d locks, %v, want %d", len(held), err, n)
	}
	if got := d.taken()["GET"] - n; got < n/7 {
		t.Errorf("%d pages, want at least %d", got, n/7)
	}
}

// What the doctor is told.
func TestExamine(t *testing.T) {
	srv := start(t)
	e, err := s3store.Examine(t.Context(), bucket, with(t, srv.url(), s3store.Options{Durable: true}))
	if err != nil || e.Unusable != nil || e.Racy || e.Class != store.CrashSafe || !strings.Contains(e.Node, srv.address) {
		t.Errorf("examine: %+v, %v, want a usable server", e, err)
	}
	d := openDoor(t, srv)
	accept := func(w http.ResponseWriter, r *http.Request) bool {
		racing := isPut(r) && strings.HasSuffix(r.URL.Path, "/race")
		if racing {
			w.Header().Set("ETag", `"0"`)
		}
		return racing
	}
	d.answer.Store(&accept)
	if e, err := s3store.Examine(t.Context(), bucket, with(t, d.URL, s3store.Options{})); err != nil || !e.Racy || e.Class != store.Efficiency {
		t.Errorf("examine a server that accepts several writes at once: %+v, %v", e, err)
	}
	srv.own()
	srv.kill()
	if e, err := s3store.Examine(t.Context(), bucket, with(t, srv.url(), s3store.Options{Timeout: time.Second})); err != nil || e.Unusable == nil {
		t.Errorf("examine a port at which nothing listens: %+v, %v, want that it is unusable", e, err)
	}
}

// Credentials come from where other programs look for them, and errors contain none.
func TestCredentials(t *testing.T) {
	srv := start(t)
	dir := t.TempDir()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", dir+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", dir+"/credentials")
	url := "s3://" + bucket + "?poll=20ms&endpoint=" + srv.url()
	refused := func(what, url, says string) {
		t.Helper()
		s, err := store.Open(t.Context(), url, nil)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want a refusal that says %q", what, err, says)
		}
	}
	works := func(what, url string) {
		t.Helper()
		s, err := store.Open(t.Context(), url, nil)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		s.Close()
	}
	refused("without credentials", url, "AWS_ACCESS_KEY_ID")
	refused("without a region", "s3://"+bucket, "region")
	if err := os.WriteFile(dir+"/credentials", []byte("[app]\naws_access_key_id="+key+"\naws_secret_access_key="+secret+"\n[wrong]\naws_access_key_id="+key+"\naws_secret_access_key=hush-hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/config", []byte("[profile app]\nendpoint_url="+srv.url()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	works("with a profile in the URL", url+"&profile=app")
	works("with an endpoint in the shared configuration", "s3://"+bucket+"?profile=app")
	refused("with a profile that there is not", url+"&profile=none", "none")
	refused("with a wrong secret", url+"&profile=wrong", "SignatureDoesNotMatch")
	t.Setenv("AWS_ACCESS_KEY_ID", key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	works("with the environment", url)
	refused("a bucket that there is not", strings.Replace(url, bucket, "other", 1), "NoSuchBucket")
}

// The rights that docs/s3.md names are enough.
func TestRights(t *testing.T) {
	srv := start(t)
	srv.own()
	doc, err := os.ReadFile("../../../docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := string(doc[bytes.Index(doc, []byte(`{"Version"`)):])
	policy = policy[:strings.Index(policy, "]}")+2]
	policy = strings.NewReplacer("BUCKET", bucket, "PREFIX", "app", `"Effect": "Allow"`, `"Effect": "Allow", "Principal": {"AWS": "APP"}`).Replace(policy)
	o := with(t, srv.url(), s3store.Options{Prefix: "app"})
	o.Config.Credentials = credentials.NewStaticCredentialsProvider("APP", secret, "")
	if s, err := s3store.Open(t.Context(), bucket, o); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("without rights: %v, %v, want a refusal", s, err)
	}
	if _, err := srv.client().PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: &policy}); err != nil {
		t.Fatalf("policy %s: %v", policy, err)
	}
	s, err := s3store.Open(t.Context(), bucket, o)
	if err != nil {
		t.Fatalf("with the documented rights: %v", err)
	}
	defer s.Close()
	l := lease("a", time.Minute)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	if held, err := s.List(t.Context(), ""); err != nil || len(held) != 1 {
		t.Errorf("list: %v, %v", held, err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	o.Prefix = "other"
	if s, err := s3store.Open(t.Context(), bucket, o); !errors.Is(err, recordstore.ErrRefused) {
		t.Errorf("below another prefix: %v, %v, want a refusal", s, err)
	}
}

// A server with a certificate is trusted if AWS_CA_BUNDLE or the system does.
func TestTLS(t *testing.T) {
	srv := start(t)
	d := openDoor(t, srv)
	front := httptest.NewTLSServer(d.Config.Handler)
	t.Cleanup(front.Close)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Setenv("AWS_ACCESS_KEY_ID", key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	url := "s3://" + bucket + "?endpoint=" + front.URL
	t.Setenv("AWS_CA_BUNDLE", "")
	if s, err := store.Open(t.Context(), url, nil); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a certificate that nobody trusts: %v, %v", s, err)
	}
	file := t.TempDir() + "/ca.pem"
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CA_BUNDLE", file)
	s, err := store.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// The class is that of S3 itself only where nothing names another server.
func TestClass(t *testing.T) {
	srv := start(t)
	for want, o := range map[store.Class]s3store.Options{store.Efficiency: {}, store.CrashSafe: {Durable: true}} {
		if got := open(t, srv.url(), o).Caps().Class; got != want {
			t.Errorf("%+v: class %v, want %v", o, got, want)
		}
	}
}

func TestParseURL(t *testing.T) {
	for url, want := range map[string]s3store.Options{
		"s3://my.bucket":              {Prefix: "leasehold"},
		"s3://b-1/app/locks/":         {Prefix: "app/locks"},
		"s3://bb?region=eu-central-1": {Prefix: "leasehold", Region: "eu-central-1"},
		"s3://bb?endpoint=http://[::1]:9000&durable=true&virtual_host=true": {Prefix: "leasehold", Endpoint: "http://[::1]:9000", Durable: true, VirtualHost: true},
		"s3://bb?profile=p&skew=1m&poll=5s&timeout=20s":                     {Prefix: "leasehold", Profile: "p", Skew: time.Minute, Poll: 5 * time.Second, Timeout: 20 * time.Second},
	} {
		b, o, err := s3store.ParseURL(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if *o != want || !strings.HasPrefix(url[5:], b) {
			t.Errorf("%s: bucket %q, %+v, want %+v", url, b, *o, want)
		}
	}
	for _, url := range []string{
		"", "s3:", "s3://", "redis://a", "s3://a", "s3://bb:9000/p", "s3://AKIA:hush@bb", "s3://AKIA@bb", "s3://bb/a//b", "s3://bb/../x", "s3://bb/a b", "s3://bb?x=1", "s3://bb?skew=5",
		"s3://bb?durable=yes", "s3://bb?endpoint=host:9000", "s3://bb?endpoint=https://k:hush@host", "s3://bb?skew=1s&skew=2s", "s3://bb?skew=-1s", "s3://bb#x", "s3://" + strings.Repeat("b", 256),
	} {
		if _, _, err := s3store.ParseURL(url); !errors.Is(err, store.ErrInvalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v, want an error that matches ErrInvalid and has no secret", url, err)
		}
	}
}
