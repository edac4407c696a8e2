package s3storetest

import (
	"bytes"
	"context"
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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/recordstore"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

var kind = objectstest.Kind{
	Start: start,
	Open: func(ctx context.Context, endpoint string, o objectstest.Options) (*store.Store, error) {
		return s3store.Open(ctx, "s3://"+bucket, with(endpoint, s3store.Options{Durable: true, Prefix: o.Prefix, Skew: o.Skew, Poll: o.Poll, Timeout: o.Timeout}))
	},
	Examine: func(ctx context.Context, endpoint string, timeout time.Duration) (objectstest.Examination, error) {
		e, err := s3store.Examine(ctx, "s3://"+bucket, with(endpoint, s3store.Options{Durable: true, Timeout: timeout}))
		if e.Racy {
			err = errors.New("the server checks and writes in two steps")
		}
		return objectstest.Examination{Node: e.Node, Class: e.Class, Unusable: e.Unusable}, err
	},
	ByHand: byHand,
	URL:    func(endpoint string) string { return "s3://" + bucket + "/torture?durable=true&endpoint=" + endpoint },
	Env:    []string{"AWS_ACCESS_KEY_ID=" + key, "AWS_SECRET_ACCESS_KEY=" + secret, "AWS_REGION=" + region, "AWS_EC2_METADATA_DISABLED=true"},
	Method: http.MethodPut,
	Fail: func(w http.ResponseWriter, f objectstest.Failure) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(f.Status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test asked for</Message></Error>", f.Code)
	},
	// 409: another write is under way.
	Passing: []objectstest.Failure{{Status: 500, Code: "InternalError"}, {Status: 409, Code: "ConditionalRequestConflict"}, {Status: 403, Code: "RequestTimeTooSkewed"}},
	Slow:    []objectstest.Failure{{Status: 503, Code: "SlowDown"}},
	Final:   []objectstest.Failure{{Status: 403, Code: "AccessDenied"}, {Status: 404, Code: "NoSuchBucket"}, {Status: 301, Code: "PermanentRedirect"}, {Status: 501, Code: "NotImplemented"}},
	Ignore: map[string]func(http.ResponseWriter, *http.Request) bool{
		"does not heed If-Match":      without("If-Match"),
		"does not heed If-None-Match": without("If-None-Match"),
	},
	Page: func(r *http.Request, n int) {
		if q := r.URL.Query(); q.Has("list-type") {
			q.Set("max-keys", fmt.Sprint(n))
			r.URL.RawQuery = q.Encode()
			sign(r)
		}
	},
	Behind: func(w http.ResponseWriter, r *http.Request) bool {
		listed := r.URL.Query().Has("list-type")
		if listed {
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprint(w, "<ListBucketResult></ListBucketResult>")
		}
		return listed
	},
}

func TestConformsOnObjects(t *testing.T)            { kind.Conforms(t) }
func TestRequests(t *testing.T)                     { kind.Requests(t) }
func TestIgnoredConditionsAreRefused(t *testing.T)  { kind.IgnoredConditionsAreRefused(t) }
func TestFaultsOnObjects(t *testing.T)              { kind.Faults(t) }
func TestServerErrors(t *testing.T)                 { kind.ServerErrors(t) }
func TestRefusalsAreFinal(t *testing.T)             { kind.RefusalsAreFinal(t) }
func TestSlowDown(t *testing.T)                     { kind.SlowDown(t) }
func TestDeletedObjects(t *testing.T)               { kind.DeletedObjects(t) }
func TestDeadHolder(t *testing.T)                   { kind.DeadHolder(t) }
func TestDeadHolderIsSeenByNewClients(t *testing.T) { kind.DeadHolderIsSeenByNewClients(t) }
func TestLists(t *testing.T)                        { kind.Lists(t) }
func TestListsThatAreBehind(t *testing.T)           { kind.ListsThatAreBehind(t) }
func TestExamine(t *testing.T)                      { kind.Examined(t) }
func TestContest(t *testing.T)                      { kind.Contest(t) }
func TestConformsUnderFaultsOnObjects(t *testing.T) { t.Parallel(); kind.ConformsUnderFaults(t) }
func TestIdleCost(t *testing.T)                     { t.Parallel(); kind.IdleCost(t) }
func TestTortureOnObjects(t *testing.T)             { kind.Torture(t) }
func BenchmarkLock(b *testing.B)                    { kind.BenchmarkLock(b) }
func BenchmarkOneLock(b *testing.B)                 { kind.BenchmarkOneLock(b) }
func BenchmarkHandOff(b *testing.B)                 { kind.BenchmarkHandOff(b) }

// The doctor is told of a server that accepts several writes at once.
func TestExamineRaces(t *testing.T) {
	srv := start(t, false)
	srv.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		racing := isPut(r) && strings.HasSuffix(r.URL.Path, "/race")
		if racing {
			w.Header().Set("ETag", `"0"`)
		}
		return racing
	})
	if e, err := s3store.Examine(t.Context(), "s3://"+bucket, with(srv.URL, s3store.Options{})); err != nil || !e.Racy || e.Class != store.Efficiency {
		t.Errorf("examine a server that accepts several writes at once: %+v, %v", e, err)
	}
}

// Credentials come from where other programs look for them, and errors contain none.
func TestCredentials(t *testing.T) {
	srv := start(t, false)
	dir := t.TempDir()
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_CONFIG_FILE", dir+"/config")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", dir+"/credentials")
	url := "s3://" + bucket + "?poll=20ms&endpoint=" + srv.Direct
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
	if err := os.WriteFile(dir+"/config", []byte("[profile app]\nendpoint_url="+srv.Direct+"\n"), 0o600); err != nil {
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
	srv := start(t, true)
	doc, err := os.ReadFile("../../../docs/s3.md")
	if err != nil {
		t.Fatal(err)
	}
	policy := string(doc[bytes.Index(doc, []byte(`{"Version"`)):])
	policy = policy[:strings.Index(policy, "]}")+2]
	policy = strings.NewReplacer("BUCKET", bucket, "PREFIX", "app", `"Effect": "Allow"`, `"Effect": "Allow", "Principal": {"AWS": "APP"}`).Replace(policy)
	o := with(srv.Direct, s3store.Options{Prefix: "app"})
	o.Config.Credentials = credentials.NewStaticCredentialsProvider("APP", secret, "")
	if s, err := s3store.Open(t.Context(), "s3://"+bucket, o); !errors.Is(err, recordstore.ErrRefused) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("without rights: %v, %v, want a refusal", s, err)
	}
	if _, err := client(t, srv.Direct).PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: aws.String(bucket), Policy: &policy}); err != nil {
		t.Fatalf("policy %s: %v", policy, err)
	}
	s, err := s3store.Open(t.Context(), "s3://"+bucket, o)
	if err != nil {
		t.Fatalf("with the documented rights: %v", err)
	}
	defer s.Close()
	l := objectstest.Lease("a", time.Minute)
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
	if s, err := s3store.Open(t.Context(), "s3://"+bucket, o); !errors.Is(err, recordstore.ErrRefused) {
		t.Errorf("below another prefix: %v, %v, want a refusal", s, err)
	}
}

// A server with a certificate is trusted if AWS_CA_BUNDLE or the system does.
func TestTLS(t *testing.T) {
	srv := start(t, false)
	front := httptest.NewTLSServer(srv.Door)
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
	srv := start(t, false)
	for want, o := range map[store.Class]s3store.Options{store.Efficiency: {}, store.CrashSafe: {Durable: true}} {
		if got := open(t, srv.Direct, o).Caps().Class; got != want {
			t.Errorf("%+v: class %v, want %v", o, got, want)
		}
	}
}
