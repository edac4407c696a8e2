package s3storetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/s3store"
)

// The test program is the server as well, if serverVar names its address, the directory of its
// objects, and that of its users.
const serverVar = "LEASEHOLD_TEST_S3_SERVER"

// If elsewhereVar has the HOST:PORT of another server, tests run there that do not kill it or
// change its users. It has the user below, and a bucket for these tests alone, which they empty.
const elsewhereVar = "LEASEHOLD_TEST_S3_ELSEWHERE"

const (
	key    = "TESTKEY"
	secret = "test-secret"
	region = "us-east-1"
	bucket = "locks"
)

func TestMain(m *testing.M) {
	if f := strings.Fields(os.Getenv(serverVar)); len(f) == 3 {
		fmt.Fprintln(os.Stderr, serve(f[0], f[1], f[2]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine))
}

// serve runs a server until the process is killed.
func serve(address, dir, users string) error {
	b, err := posix.New(dir, meta.XattrMeta{}, posix.PosixOpts{Concurrency: 1000})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), b, &embedgw.Config{
		RootUserAccess: key, RootUserSecret: secret, Region: region, Ports: []string{address}, MaxConnections: 4096, MaxRequests: 4096, MultipartMaxParts: 10000, Quiet: true, KeepAlive: true, IAMDir: users, IAMCacheDisable: true,
	})
}

// server is a server of S3 that can be killed and started again with its objects.
type server struct {
	t       testing.TB
	address string
	dir     string
	users   string
	process *child.Process
}

// start starts a server with a bucket, and ends it with the test.
func start(t testing.TB) *server {
	t.Helper()
	if address := os.Getenv(elsewhereVar); address != "" {
		s := &server{t: t, address: address}
		s.empty()
		return s
	}
	n, err := port.Pick()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Release(n) })
	s := &server{t: t, address: fmt.Sprint("127.0.0.1:", n), dir: t.TempDir(), users: t.TempDir()}
	accounts := fmt.Sprintf(`{"accessAccounts":{"APP":{"access":"APP","secret":%q,"role":"user"}}}`, secret)
	if err := os.WriteFile(s.users+"/users.json", []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	s.start()
	t.Cleanup(func() { s.process.Kill() })
	if _, err := s.client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// empty makes the bucket, or deletes what is in it.
func (s *server) empty() {
	s.t.Helper()
	c := s.client()
	_, _ = c.CreateBucket(s.t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	for {
		page, err := c.ListObjectsV2(s.t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
		if err != nil {
			s.t.Fatal(err)
		}
		if len(page.Contents) == 0 {
			return
		}
		for _, o := range page.Contents {
			if _, err := c.DeleteObject(s.t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: o.Key}); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// own skips the test if the server is not one that it may kill and whose users it may change.
func (s *server) own() {
	s.t.Helper()
	if s.process == nil {
		s.t.Skip("the server is not started by this test")
	}
}

func (s *server) start() {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverVar+"="+s.address+" "+s.dir+" "+s.users)
	p, err := child.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = p
	eventually.True(s.t, "the server answers", func() bool { return s.date() != "" })
}

// worked returns for how long processors have worked for the server, or 0 if the system does not
// tell.
func (s *server) worked() time.Duration {
	if s.process == nil {
		return 0
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.PID()))
	_, rest, found := strings.Cut(string(stat), ") ")
	f := strings.Fields(rest)
	if err != nil || !found || len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11]) // in hundredths of a second, as in proc(5)
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// date returns the server's time, or "" if it does not answer.
func (s *server) date() string {
	defer http.DefaultClient.CloseIdleConnections()
	res, err := http.Get(s.url())
	if err != nil {
		return ""
	}
	res.Body.Close()
	return res.Header.Get("Date")
}

// kill kills the server with SIGKILL.
func (s *server) kill() { s.process.Kill() }

func (s *server) url() string { return "http://" + s.address }

// login is the configuration with the credentials of the server.
func login() *aws.Config {
	return &aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")}
}

func (s *server) client() *s3.Client {
	t := &http.Transport{MaxIdleConnsPerHost: 64}
	s.t.Cleanup(t.CloseIdleConnections)
	return s3.NewFromConfig(*login(), func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle, o.HTTPClient, o.Retryer = aws.String(s.url()), true, &http.Client{Transport: t}, aws.NopRetryer{}
		o.RequestChecksumCalculation, o.ResponseChecksumValidation = aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
	})
}

// open opens a store, and closes it with the test.
func open(t testing.TB, endpoint string, o s3store.Options) *store.Store {
	t.Helper()
	s, err := s3store.Open(t.Context(), bucket, with(t, endpoint, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// with returns o with what tests need.
func with(t testing.TB, endpoint string, o s3store.Options) *s3store.Options {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	o.Config = login()
	o.Config.HTTPClient = &http.Client{Transport: transport}
	o.Endpoint, o.Poll = endpoint, cmp.Or(o.Poll, 20*time.Millisecond)
	return &o
}

// door stands in front of a server. It counts requests, and can answer them itself, change them,
// and lose answers.
type door struct {
	*httptest.Server
	mu     sync.Mutex
	counts map[string]int // by method
	// answer, if it is set and returns true, has answered.
	answer atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
	// lose, if it is set and returns true, has the connection cut after the server has answered.
	lose atomic.Pointer[func(r *http.Request) bool]
	// strip names headers that do not reach the server.
	strip []string
	// page is how many objects a list may show at once, if it is not zero.
	page atomic.Int64
}

func openDoor(t testing.TB, s *server, strip ...string) *door {
	t.Helper()
	to, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	d := &door{counts: map[string]int{}, strip: strip}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = p.In.Host // which is signed
			q := p.Out.URL.Query()
			listed := q.Has("list-type") && d.page.Load() > 0
			if listed {
				q.Set("max-keys", fmt.Sprint(d.page.Load()))
				p.Out.URL.RawQuery = q.Encode()
			}
			if listed || len(d.strip) > 0 {
				d.sign(p.Out)
			}
		},
		ModifyResponse: func(res *http.Response) error {
			if lose := d.lose.Load(); lose != nil && (*lose)(res.Request) {
				_, err := io.Copy(io.Discard, res.Body)
				return cmp.Or(err, http.ErrAbortHandler)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.mu.Lock()
		d.counts[r.Method]++
		d.mu.Unlock()
		if answer := d.answer.Load(); answer != nil && (*answer)(w, r) {
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		d.Close()
		transport.CloseIdleConnections()
	})
	return d
}

// sign takes the headers away, and signs the request anew.
func (d *door) sign(r *http.Request) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	for _, h := range append(d.strip, "Authorization") {
		r.Header.Del(h)
	}
	sum := sha256.Sum256(body)
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	_ = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r, hex.EncodeToString(sum[:]), "s3", region, time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
}

// taken returns how many requests of each method there were since it was called last.
func (d *door) taken() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.counts
	d.counts = map[string]int{}
	return c
}

// failure answers with an error of S3.
func failure(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>as the test asked for</Message></Error>", code)
}
