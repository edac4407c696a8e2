package etcdstore_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// A user with the right to read and write below the prefix can use locks there, one that
// may read can look at them, and nobody else can do either. Wrong passwords and missing rights are named.
func TestRightsInEtcd(t *testing.T) {
	c := launch(t, etcdtest.Options{Args: []string{"--bcrypt-cost=4"}})
	client := native(t, c.Endpoints())
	ctx := t.Context()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(client.UserAdd(ctx, "root", "rootword"))
	must(client.UserGrantRole(ctx, "root", "root"))
	must(client.RoleAdd(ctx, "locker"))
	must(client.RoleGrantPermission(ctx, "locker", "jobs/", clientv3.GetPrefixRangeEnd("jobs/"), clientv3.PermissionType(clientv3.PermReadWrite)))
	must(client.UserAdd(ctx, "me", "secretword"))
	must(client.UserGrantRole(ctx, "me", "locker"))
	must(client.RoleAdd(ctx, "viewer"))
	must(client.RoleGrantPermission(ctx, "viewer", "jobs/", clientv3.GetPrefixRangeEnd("jobs/"), clientv3.PermissionType(clientv3.PermRead)))
	must(client.UserAdd(ctx, "viewer", "secretword"))
	must(client.UserGrantRole(ctx, "viewer", "viewer"))
	must(client.AuthEnable(ctx))
	at := "etcd://me:secretword@" + c.Endpoints()[0]
	s, err := store.Open(ctx, at+"/jobs?timeout=60s", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	l := request("a", time.Minute)
	if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: l}); err != nil {
		t.Fatal(err)
	}
	if err := s.Renew(ctx, []store.Lease{l})[0]; err != nil {
		t.Error(err)
	}
	done := waits(t, s.(*etcdstore.Store), request("a", time.Minute))
	if err := s.Release(ctx, store.ReleaseRequest{Lease: l}); err != nil {
		t.Error(err)
	}
	gets(t, "with rights", done)
	if list, err := s.List(ctx, ""); err != nil || len(list) != 1 {
		t.Errorf("list: %+v, %v", list, err)
	}
	viewer, err := store.Open(ctx, "etcd://viewer:secretword@"+c.Endpoints()[0]+"/jobs?timeout=60s", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer viewer.Close()
	if st, err := viewer.Inspect(ctx, "a"); err != nil || !st.Held {
		t.Errorf("inspect by a user who may read: %+v, %v", st, err)
	}
	if _, err := viewer.Acquire(ctx, store.AcquireRequest{Lease: request("b", time.Minute)}); !errors.Is(err, store.ErrQuorum) || !strings.Contains(err.Error(), "role grant-permission") {
		t.Errorf("acquire by a user who may read: %v", err)
	}
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

// With etcds the server's certificate is checked, and the client shows its own.
func TestEtcdWithTLS(t *testing.T) {
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
	for _, url := range []string{"etcd://" + at + "?timeout=500ms", "etcds://" + at + "?timeout=500ms", "etcds://" + at + "?timeout=500ms&ca=" + file("ca.pem")} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if _, err := store.Open(ctx, url, nil); !errors.Is(err, store.ErrQuorum) {
			t.Errorf("%s: %v", url, err)
		}
		cancel()
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
