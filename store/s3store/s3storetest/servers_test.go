package s3storetest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
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
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/objectstest"
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

// start starts a server with a bucket, and ends it with the test. own says that the test kills it or
// changes its users.
func start(t testing.TB, own bool) *objectstest.Server {
	t.Helper()
	if address := os.Getenv(elsewhereVar); address != "" {
		if own {
			t.Skip("the server is not started by this test")
		}
		direct := "http://" + address
		empty(t, client(t, direct))
		return &objectstest.Server{Door: door.Open(t, door.To(t, direct)), Direct: direct}
	}
	dir, users := t.TempDir(), t.TempDir()
	accounts := fmt.Sprintf(`{"accessAccounts":{"APP":{"access":"APP","secret":%q,"role":"user"}}}`, secret)
	if err := os.WriteFile(users+"/users.json", []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	s := objectstest.Launch(t, func(address string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), serverVar+"="+address+" "+dir+" "+users)
		return cmd
	}, func(url string) bool {
		defer http.DefaultClient.CloseIdleConnections()
		res, err := http.Get(url)
		if err == nil {
			res.Body.Close()
		}
		return err == nil
	})
	if _, err := client(t, s.Direct).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// empty makes the bucket, or deletes what is in it.
func empty(t testing.TB, c *s3.Client) {
	t.Helper()
	_, _ = c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucket)})
	for {
		page, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Contents) == 0 {
			return
		}
		for _, o := range page.Contents {
			if _, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: o.Key}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// login is the configuration with the credentials of the server.
func login() *aws.Config {
	return &aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider(key, secret, "")}
}

func client(t testing.TB, endpoint string) *s3.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return s3.NewFromConfig(*login(), func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle, o.HTTPClient, o.Retryer = aws.String(endpoint), true, &http.Client{Transport: transport}, aws.NopRetryer{}
		o.RequestChecksumCalculation, o.ResponseChecksumValidation = aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
	})
}

// byHand writes objects with the client of AWS.
func byHand(t testing.TB, endpoint string) objectstest.Hand {
	c := client(t, endpoint)
	return objectstest.Hand{
		Write: func(ctx context.Context, name, version string) (string, error) {
			in := &s3.PutObjectInput{Bucket: aws.String(bucket), Key: aws.String(name), Body: strings.NewReader(rand.Text())}
			if version == "" {
				in.IfNoneMatch = aws.String("*")
			} else {
				in.IfMatch = aws.String(version)
			}
			out, err := c.PutObject(ctx, in)
			if err != nil {
				return "", err
			}
			return aws.ToString(out.ETag), nil
		},
		Delete: func(ctx context.Context, name string) error {
			_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: aws.String(name)})
			return err
		},
	}
}

// with returns options for a server. Clients have the credentials of the test.
func with(endpoint string, o s3store.Options) *s3store.Options {
	o.Endpoint, o.Config, o.Poll = endpoint, login(), cmp.Or(o.Poll, 20*time.Millisecond)
	o.Config.HTTPClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}} // the store closes its connections
	return &o
}

// open opens a store, and closes it with the test.
func open(t testing.TB, endpoint string, o s3store.Options) *store.Store {
	t.Helper()
	s, err := s3store.Open(t.Context(), "s3://"+bucket, with(endpoint, o))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func isPut(r *http.Request) bool { return r.Method == http.MethodPut }

// without has a server not see a header.
func without(header string) func(http.ResponseWriter, *http.Request) bool {
	return func(_ http.ResponseWriter, r *http.Request) bool {
		r.Header.Del(header)
		sign(r)
		return false
	}
}

// sign signs a request anew.
func sign(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Del("Authorization")
	sum := sha256.Sum256(body)
	r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	_ = v4.NewSigner().SignHTTP(r.Context(), aws.Credentials{AccessKeyID: key, SecretAccessKey: secret}, r, hex.EncodeToString(sum[:]), "s3", region, time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
}
