package etcdstore_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// allow makes a user of that name, with a role of that name, and the rights for a use.
func allow(t *testing.T, client *clientv3.Client, name string, rights []etcdstore.Right) {
	t.Helper()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.RoleAdd(t.Context(), name))
	for _, r := range rights {
		end, kind := "", clientv3.PermRead
		if r.Prefix {
			end = clientv3.GetPrefixRangeEnd(r.Key)
		}
		if r.Write {
			kind = clientv3.PermReadWrite
		}
		must(client.RoleGrantPermission(t.Context(), name, r.Key, end, clientv3.PermissionType(kind)))
	}
	must(client.UserAdd(t.Context(), name, "secretword"))
	must(client.UserGrantRole(t.Context(), name, name))
}

// guarded starts an etcd whose only user is root. enable turns authentication on.
func guarded(t *testing.T, program func() (string, error), args ...string) (c *etcdtest.Cluster, client *clientv3.Client, enable func()) {
	t.Helper()
	p, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if c, err = etcdtest.Launch(etcdtest.Options{Program: p, Args: append([]string{"--bcrypt-cost=4"}, args...)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	client = native(t, c.Endpoints())
	if _, err := client.UserAdd(t.Context(), "root", "rootword"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.UserGrantRole(t.Context(), "root", "root"); err != nil {
		t.Fatal(err)
	}
	return c, client, func() {
		t.Helper()
		if _, err := client.AuthEnable(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// lockAndLook does all that a user can do with a lock, and returns the first error.
func lockAndLook(ctx context.Context, s *store.Store, name string) error {
	held, next := request(name, 20*time.Second), request(name, 20*time.Second)
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: held}); err != nil {
		return err
	}
	if err := s.Renew(ctx, []store.Lease{held})[0]; err != nil {
		return err
	}
	longer := held
	longer.TTL += 5 * time.Second
	if err := s.Renew(ctx, []store.Lease{longer})[0]; err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	told, got := make(chan struct{}, 1000), make(chan error, 1)
	go func() {
		_, err := s.Wait(ctx, store.WaitRequest{Lease: next}, func(error) { told <- struct{}{} })
		got <- err
	}()
	select {
	case <-told:
	case err := <-got:
		return errors.Join(errors.New("the wait ended before the release"), err)
	}
	again := store.WaitRequest{Lease: request(name, 20*time.Second)}
	queued, err := s.ReleaseAndRejoin(ctx, store.ReleaseRequest{Lease: held}, again)
	if err != nil || !queued {
		return errors.Join(errors.New("the lease is not released, or not in the queue again"), err)
	}
	if err := <-got; err != nil {
		return err
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: next}); err != nil {
		return err
	}
	if _, err := s.Wait(ctx, again, nil); err != nil {
		return err
	}
	if st, err := s.Inspect(ctx, name); err != nil || !st.Held {
		return errors.Join(errors.New("inspect does not show the lock as held"), err)
	}
	if all, err := s.List(ctx, name); err != nil || len(all) != 1 {
		return errors.Join(errors.New("list does not show the lock"), err)
	}
	if err := s.Release(ctx, store.ReleaseRequest{Lease: again.Lease}); err != nil {
		return err
	}
	shared := request(name, 20*time.Second)
	shared.Kind = store.Kind{Limit: 2}
	g, err := s.Acquire(ctx, store.AcquireRequest{Lease: shared})
	if err != nil {
		return err
	}
	if _, err := s.BreakLease(ctx, store.BreakRequest{Name: name, Owner: shared.Owner, Token: g.Token}); err != nil {
		return err
	}
	if st, err := s.Inspect(ctx, name); err != nil || st.Broken == nil {
		return errors.Join(errors.New("the note about the broken lease is not seen"), err)
	}
	return s.Release(ctx, store.ReleaseRequest{Lease: shared})
}

// The rights that the store names for a use are enough for it, and each is needed. Other
// locks and other keys are refused. Errors name wrong passwords and missing rights.
func TestRightsInEtcd(t *testing.T) {
	t.Parallel()
	for version, program := range map[string]func() (string, error){"installed": etcdtest.Installed, "current": etcdtest.Current} {
		t.Run(version, func(t *testing.T) { rightsIn(t, program) })
	}
}

func rightsIn(t *testing.T, program func() (string, error)) {
	c, client, enable := guarded(t, program)
	o := &etcdstore.Options{Prefix: "jobs", Timeout: patience}
	rightsOf := func(u etcdstore.Use, floor fence.Token) []etcdstore.Right {
		t.Helper()
		with := *o
		with.Floor = floor
		rights, err := u.Rights(urlOf(c.Endpoints()...), &with)
		if err != nil {
			t.Fatal(err)
		}
		return rights
	}
	allow(t, client, "all", rightsOf(etcdstore.Use{Lock: true}, 0))
	allow(t, client, "floor", rightsOf(etcdstore.Use{Names: "d/", Lock: true}, 1000))
	allow(t, client, "viewer", rightsOf(etcdstore.Use{Names: "a/"}, 0))
	allow(t, client, "doctor", rightsOf(etcdstore.Use{Names: "a/", Examine: true}, 0))
	some := rightsOf(etcdstore.Use{Names: "a/", Lock: true}, 0)
	allow(t, client, "me", some)
	for i := range some {
		allow(t, client, fmt.Sprint("without", i), slices.Delete(slices.Clone(some), i, i+1))
	}
	enable()
	as := func(user string) (*store.Store, error) {
		t.Helper()
		with := *o
		with.Username, with.Password = user, "secretword"
		if user == "floor" {
			with.Floor = 1000
		}
		s, err := etcdstore.Open(t.Context(), urlOf(c.Endpoints()...), &with)
		if err == nil {
			t.Cleanup(func() { s.Close() })
		}
		return s, err
	}
	must := func(user string) *store.Store {
		t.Helper()
		s, err := as(user)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		return s
	}
	ctx := t.Context()
	if err := lockAndLook(ctx, must("floor"), "d/1"); err != nil {
		t.Errorf("with the right to fix the floor: %v", err)
	}
	for user, name := range map[string]string{"all": "b", "me": "a/1"} {
		if err := lockAndLook(ctx, must(user), name); err != nil {
			t.Errorf("%s has all rights: %v", user, err)
		}
	}
	forbidden := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "role grant-permission") {
			t.Errorf("%s: %v, want %v and advice to use role grant-permission", what, err, store.ErrQuorum)
		}
	}
	for i, r := range some {
		s, err := as(fmt.Sprint("without", i))
		if err == nil {
			err = lockAndLook(ctx, s, fmt.Sprint("a/without", i))
		}
		forbidden(fmt.Sprintf("without the right to %q", r.Key), err)
	}
	me := must("me")
	for _, name := range []string{"b", "a", "!a/1"} {
		forbidden("lock "+name, lockAndLook(ctx, me, name))
	}
	_, err := me.List(ctx, "")
	forbidden("list all locks", err)
	held := request("a/held", time.Minute)
	acquire(t, me, held)
	viewer := must("viewer")
	if st, err := viewer.Inspect(ctx, held.Name); err != nil || !st.Held {
		t.Errorf("inspect by a user with the right to read: %+v, %v", st, err)
	}
	if all, err := viewer.List(ctx, "a/held"); err != nil || len(all) != 1 {
		t.Errorf("list by a user with the right to read: %+v, %v, want one lock", all, err)
	}
	forbidden("acquire by a user with the right to read", lockAndLook(ctx, viewer, "a/2"))
	forbidden("release by a user with the right to read", viewer.Release(ctx, store.ReleaseRequest{Lease: held}))
	with := *o
	with.Username, with.Password = "doctor", "secretword"
	if e, err := etcdstore.Examine(ctx, urlOf(c.Endpoints()...), &with); err != nil || e.Unusable != nil || e.Voters != 1 || e.Members[0].Err != nil {
		t.Errorf("examine: %+v, %v, want one usable voter", e, err)
	}
	own := native(t, c.Endpoints(), func(o *clientv3.Config) { o.Username, o.Password = "me", "secretword" })
	if _, err := own.Put(ctx, "others/a", "x"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("write of another key: %v, want %v", err, rpctypes.ErrPermissionDenied)
	}
	at := "etcd://me:secretword@" + c.Endpoints()[0]
	for url, says := range map[string]string{
		at + "/others?timeout=60s":                                      "role grant-permission",
		"etcd://me:wrongword@" + c.Endpoints()[0] + "/jobs?timeout=60s": "wrong user or password",
		"etcd://" + c.Endpoints()[0] + "/jobs?timeout=60s":              "asks for a user",
	} {
		_, err := store.Open(ctx, url, &store.OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "word@") {
			t.Errorf("%s: %v, want it to say %q", url, err, says)
		}
	}
}

// Renewals do not log in each time: it takes a server long to check a password. They go on after
// the server was started again, which ends the connection.
func TestRenewalsDoNotLogIn(t *testing.T) {
	t.Parallel()
	c, client, enable := guarded(t, etcdtest.Installed)
	rights, err := etcdstore.Use{Lock: true}.Rights(urlOf(c.Endpoints()...), nil)
	if err != nil {
		t.Fatal(err)
	}
	allow(t, client, "me", rights)
	enable()
	var logins atomic.Int32
	count := grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
		if strings.HasSuffix(method, "/Authenticate") {
			logins.Add(1)
		}
		return invoke(ctx, method, req, reply, cc, o...)
	})
	s := open(t, c.Endpoints(), etcdstore.Options{Username: "me", Password: "secretword", Timeout: patience, DialOptions: []grpc.DialOption{count}})
	l := request("a", time.Minute)
	acquire(t, s, l)
	renew := func() {
		if err := s.Renew(t.Context(), []store.Lease{l})[0]; err != nil {
			t.Fatal(err)
		}
	}
	renew()
	before := logins.Load()
	for range 10 {
		renew()
	}
	if more := logins.Load() - before; before == 0 || more != 0 {
		t.Errorf("%d logins before, and %d more for ten renewals, want some and none", before, more)
	}
	c.Members[0].Kill()
	if err := c.Members[0].Restart(); err != nil {
		t.Fatal(err)
	}
	renew()
}

// If authentication is turned on while a lease is held, the renewal is refused and says what to do.
func TestAuthenticationIsTurnedOn(t *testing.T) {
	c, _, enable := guarded(t, etcdtest.Installed)
	s := open(t, c.Endpoints(), etcdstore.Options{})
	l := request("a", time.Minute)
	acquire(t, s, l)
	enable()
	if err := s.Renew(t.Context(), []store.Lease{l})[0]; err == nil || !strings.Contains(err.Error(), "the server asks for a user") || !strings.Contains(err.Error(), "ETCD_PASSWORD") {
		t.Errorf("renew: %v, want that the server refuses it without a user", err)
	}
}

// With etcds the server's certificate is checked, and the client shows its own.
func TestEtcdWithTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := certificate(t, dir, "ca", nil)
	certificate(t, dir, "server", ca)
	certificate(t, dir, "client", ca)
	file := func(name string) string { return filepath.Join(dir, name) }
	c := launch(t, etcdtest.Options{Scheme: "https", Args: []string{
		"--cert-file=" + file("server.pem"), "--key-file=" + file("server.key"), "--trusted-ca-file=" + file("ca.pem"), "--client-cert-auth",
	}})
	at := c.Endpoints()[0]
	s, err := store.Open(t.Context(), "etcds://"+at+"?ca="+file("ca.pem")+"&cert="+file("client.pem")+"&key="+file("client.key"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := request("a", time.Minute)
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	certificate(t, dir, "other", nil)
	var group sync.WaitGroup
	defer group.Wait()
	for _, x := range []struct{ url, want string }{
		{"etcd://" + at + "?", "cannot connect"},
		{"etcds://" + at + "?", "unknown authority"},
		{"etcds://" + at + "?ca=" + file("ca.pem") + "&", "cannot connect"},
		{"etcds://" + at + "?ca=" + file("ca.pem") + "&cert=" + file("other.pem") + "&key=" + file("other.key") + "&", "cannot connect"},
		{"etcds://" + server.Endpoints()[0] + "?ca=" + file("ca.pem") + "&", "handshake failed"},
		{"etcds://localhost:" + at[strings.LastIndex(at, ":")+1:] + "?ca=" + file("ca.pem") + "&", "match localhost"},
	} {
		group.Go(func() {
			if _, err := store.Open(t.Context(), x.url+"timeout=5s", nil); !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), x.want) {
				t.Errorf("open %s: %v, want %v with %q", x.url, err, store.ErrQuorum, x.want)
			}
		})
	}
}

type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// certificate writes a certificate for 127.0.0.1 and its key. It is signed by itself if
// by is nil.
func certificate(t *testing.T, dir, name string, by *signer) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: by == nil,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	me := &signer{c, key}
	if by == nil {
		by = me
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{name + ".pem": {Type: "CERTIFICATE", Bytes: der}, name + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return me
}

// A certificate that is renewed in its file is shown from the next connection on.
func TestRotatedCertificate(t *testing.T) {
	dir := t.TempDir()
	certificate(t, dir, "client", nil)
	files := "cert=" + filepath.Join(dir, "client.pem") + "&key=" + filepath.Join(dir, "client.key")
	_, o, err := etcdstore.ParseURL("etcds://127.0.0.1?"+files, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := func() []byte {
		t.Helper()
		pair, err := o.TLS.GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	before := shown()
	certificate(t, dir, "client", nil)
	if bytes.Equal(before, shown()) {
		t.Error("the client shows the certificate that was replaced")
	}
}
