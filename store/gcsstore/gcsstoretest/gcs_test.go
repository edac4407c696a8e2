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
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/gcsstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

var kind = objectstest.Kind{
	Start: start,
	Open: func(ctx context.Context, endpoint string, o objectstest.Options) (*store.Store, error) {
		return gcsstore.Open(ctx, bucket, &gcsstore.Options{Endpoint: endpoint, Prefix: o.Prefix, Skew: o.Skew, Poll: o.Poll, Timeout: o.Timeout})
	},
	Examine: func(ctx context.Context, endpoint string, timeout time.Duration) (objectstest.Examination, error) {
		e, err := gcsstore.Examine(ctx, bucket, &gcsstore.Options{Endpoint: endpoint, Timeout: timeout})
		return objectstest.Examination{Node: e.Node, Class: e.Class, Unusable: e.Unusable}, err
	},
	ByHand: byHand,
	URL:    func(endpoint string) string { return "gs://" + bucket + "/torture?endpoint=" + endpoint },
	Method: http.MethodPost,
	Fail: func(w http.ResponseWriter, f objectstest.Failure) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, `{"error": {"code": %d, "message": "as the test asked for", "errors": [{"reason": %q}]}}`, f.Status, f.Code)
	},
	Passing: []objectstest.Failure{{Status: 500, Code: "backendError"}},
	// 429: the object was replaced less than a second ago.
	Slow:  []objectstest.Failure{{Status: 503, Code: "backendError"}, {Status: 429, Code: "rateLimitExceeded"}},
	Final: []objectstest.Failure{{Status: 403, Code: "forbidden"}, {Status: 401, Code: "authError"}, {Status: 400, Code: "invalid"}},
	Ignore: map[string]func(http.ResponseWriter, *http.Request) bool{"does not heed": func(_ http.ResponseWriter, r *http.Request) bool {
		set(r, "ifGenerationMatch", "")
		return false
	}},
	Page: func(r *http.Request, n int) {
		if r.URL.Query().Has("prefix") {
			set(r, "maxResults", fmt.Sprint(n))
		}
	},
	Behind: func(w http.ResponseWriter, r *http.Request) bool {
		listed := r.URL.Query().Has("prefix")
		if listed {
			fmt.Fprint(w, "{}")
		}
		return listed
	},
}

// set changes a parameter of a request, or removes it.
func set(r *http.Request, name, value string) {
	q := r.URL.Query()
	if q.Del(name); value != "" {
		q.Set(name, value)
	}
	r.URL.RawQuery = q.Encode()
}

func TestConforms(t *testing.T)                     { kind.Conforms(t) }
func TestRequests(t *testing.T)                     { kind.Requests(t) }
func TestIgnoredConditionsAreRefused(t *testing.T)  { kind.IgnoredConditionsAreRefused(t) }
func TestLostAnswersAndServerErrors(t *testing.T)   { kind.LostAnswersAndServerErrors(t) }
func TestRefusalsAreFinal(t *testing.T)             { kind.RefusalsAreFinal(t) }
func TestSlowDown(t *testing.T)                     { kind.SlowDown(t) }
func TestDeletedObjects(t *testing.T)               { kind.DeletedObjects(t) }
func TestDeadHolder(t *testing.T)                   { kind.DeadHolder(t) }
func TestDeadHolderIsSeenByNewClients(t *testing.T) { kind.DeadHolderIsSeenByNewClients(t) }
func TestLists(t *testing.T)                        { kind.Lists(t) }
func TestListsThatAreBehind(t *testing.T)           { kind.ListsThatAreBehind(t) }
func TestExamine(t *testing.T)                      { kind.Examined(t) }
func TestContest(t *testing.T)                      { kind.Contest(t) }
func TestConformsUnderFaults(t *testing.T)          { t.Parallel(); kind.ConformsUnderFaults(t) }
func TestIdleCost(t *testing.T)                     { t.Parallel(); kind.IdleCost(t) }
func TestTorture(t *testing.T)                      { kind.Torture(t) }
func BenchmarkLock(b *testing.B)                    { kind.BenchmarkLock(b) }
func BenchmarkHandOff(b *testing.B)                 { kind.BenchmarkHandOff(b) }

// Credentials come from the file that the environment names, are sent over TLS alone, and are in
// no error.
func TestCredentials(t *testing.T) {
	srv := start(t, false)
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
		if !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v, want a refusal that says %q", what, err, says)
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
	refused("a bucket that there is not", strings.Replace(url, bucket, "other", 1)+srv.URL, "404")
	s, err := store.Open(t.Context(), url+srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if len(sent) > 0 {
		t.Errorf("sent %q to a server that nobody trusts", sent)
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
