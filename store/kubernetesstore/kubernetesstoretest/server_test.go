package kubernetesstoretest

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/door"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

// serverVar names the program kube-apiserver. "make kubernetes" builds it.
const serverVar = "LEASEHOLD_KUBE_APISERVER"

// admin is the token of a user who may do anything. Other users have tokens of the form
// system:serviceaccount:NAMESPACE:NAME, and are those service accounts.
const admin = "admin-secret"

// shared is the API server of most tests.
var shared = sync.OnceValues(func() (*api, error) { return launch(1, etcdtest.Installed) })

func TestMain(m *testing.M) {
	code := m.Run()
	if started.Load() {
		if s, err := shared(); err == nil {
			s.close()
		}
	}
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction(child.Goroutine), goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var started atomic.Bool

// api is an API server over an etcd of its own.
type api struct {
	etcd    *etcdtest.Cluster
	dir     string
	port    int
	process *child.Process
	http    *http.Client
}

// launch starts an API server over an etcd of some members, and waits until it is ready. The caller must
// call close.
func launch(members int, program func() (string, error)) (s *api, err error) {
	started.Store(true)
	s = &api{http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 64}}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	etcd, err := program()
	if err != nil {
		return s, err
	}
	if s.etcd, err = etcdtest.Launch(etcdtest.Options{Program: etcd, Members: members}); err != nil {
		return s, err
	}
	if s.dir, err = os.MkdirTemp("", "kube-apiserver-"); err != nil {
		return s, err
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return s, err
	}
	if err := os.WriteFile(s.file("sa.key"), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600); err != nil {
		return s, err
	}
	tokens := admin + ",admin,1,system:masters\n"
	for _, user := range accounts {
		tokens += fmt.Sprintf("%s,%s,%s,\"system:serviceaccounts,system:authenticated\"\n", user, user, user)
	}
	if err := os.WriteFile(s.file("tokens.csv"), []byte(tokens), 0o600); err != nil {
		return s, err
	}
	if s.port, err = port.Pick(); err != nil {
		return s, err
	}
	return s, s.start()
}

// accounts are the service accounts that have tokens.
var accounts = []string{"system:serviceaccount:rights:locker", "system:serviceaccount:rights:viewer", "system:serviceaccount:rights:stranger"}

func (s *api) file(name string) string { return filepath.Join(s.dir, name) }

// start starts the process, and waits until it is ready.
func (s *api) start() error {
	log, err := os.OpenFile(s.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(os.Getenv(serverVar),
		"--etcd-servers=http://"+strings.Join(s.etcd.Endpoints(), ",http://"), "--bind-address=127.0.0.1", fmt.Sprint("--secure-port=", s.port), "--cert-dir="+s.file("certificates"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+s.file("sa.key"), "--service-account-signing-key-file="+s.file("sa.key"),
		"--authorization-mode=RBAC", "--token-auth-file="+s.file("tokens.csv"), "--disable-admission-plugins=ServiceAccount",
		"--service-cluster-ip-range=10.0.0.0/24", "--endpoint-reconciler-type=none", "--profiling=false")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	if s.process, err = child.Start(cmd); err != nil {
		return err
	}
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); {
		if status, _ := s.call(http.MethodGet, "/readyz", nil); status == http.StatusOK {
			return nil
		}
		select {
		case <-s.process.Done():
			text, _ := os.ReadFile(s.file("log"))
			return fmt.Errorf("kube-apiserver ended at once: %w\n%s", s.process.Err(), text)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("kube-apiserver is not ready after 3 minutes: see %s", s.file("log"))
}

func (s *api) close() {
	if s.process != nil {
		s.process.Kill()
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
	if s.port != 0 {
		port.Release(s.port)
	}
	s.http.CloseIdleConnections()
	os.RemoveAll(s.dir)
}

func (s *api) url() string { return fmt.Sprint("https://127.0.0.1:", s.port) }

// call makes a request as the admin. It returns the status, or 0 if there is no answer.
func (s *api) call(method, path string, body any) (status int, answer []byte) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // the test has made it
	}
	req, err := http.NewRequest(method, s.url()+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + admin}, "Content-Type": {"application/json"}}
	res, err := s.http.Do(req)
	if err != nil {
		return 0, nil
	}
	defer res.Body.Close()
	answer, _ = io.ReadAll(res.Body)
	return res.StatusCode, answer
}

// server is a namespace of an API server, or of an imitation, behind a door.
type server struct {
	*api // nil: it is an imitation
	*door.Door
	namespace string
	imitation *imitation
}

var namespaces atomic.Int64

// need skips the test if there is no API server.
func need(t testing.TB) {
	t.Helper()
	if os.Getenv(serverVar) == "" {
		t.Skip(serverVar + ` does not name the program kube-apiserver: "make kubernetes" builds it`)
	}
}

// start returns a new namespace of the shared API server, or of an imitation if there is none.
func start(t testing.TB) *server {
	t.Helper()
	if os.Getenv(serverVar) == "" {
		return imitate(t)
	}
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s.enter(t)
}

// own starts an API server over one etcd for one test.
func own(t testing.TB) *server { return ownOver(t, 1, etcdtest.Installed) }

// three starts an API server over three members of a current etcd, for a test that harms them.
func three(t testing.TB) *server { return ownOver(t, 3, etcdtest.Current) }

func ownOver(t testing.TB, members int, program func() (string, error)) *server {
	t.Helper()
	need(t)
	s, err := launch(members, program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s.enter(t)
}

// enter makes a namespace.
func (s *api) enter(t testing.TB) *server {
	t.Helper()
	namespace := fmt.Sprint("n", namespaces.Add(1))
	s.makeNamespace(t, namespace)
	to, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	d := door.Open(t, &httputil.ReverseProxy{
		Transport:    s.http.Transport,
		Rewrite:      func(p *httputil.ProxyRequest) { p.SetURL(to) },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	})
	return &server{api: s, Door: d, namespace: namespace}
}

func (s *api) makeNamespace(t testing.TB, name string) {
	t.Helper()
	eventually.True(t, "there is namespace "+name, func() bool {
		status, _ := s.call(http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]string{"name": name}})
		return status == http.StatusCreated || status == http.StatusConflict
	})
}

// path returns that of a Lease, or of all.
func (s *server) path(name string) string {
	return "/apis/coordination.k8s.io/v1/namespaces/" + s.namespace + "/leases/" + name
}

// config leads through the door.
func (s *server) config() *rest.Config {
	return &rest.Config{Host: s.Door.URL, BearerToken: admin, ContentConfig: rest.ContentConfig{ContentType: "application/json"}} // the imitation knows no other
}

// failure answers with an error of Kubernetes.
func failure(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"as the test asked for: %s","code":%d}`, reason, reason, status)
}

func isWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// open opens a store, and closes it with the test.
func open(t testing.TB, s *server, o kubernetesstore.Options) *store.Store {
	t.Helper()
	if o.Config == nil {
		o.Config = s.config()
	}
	st, err := kubernetesstore.Open(t.Context(), "kubernetes://"+s.namespace, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

func lease(name string, ttl time.Duration) store.Lease {
	return store.Lease{Name: name, Owner: store.NewOwner(), TTL: ttl}
}
