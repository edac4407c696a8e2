package redisstore_test

import (
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// The error says so if a port uses TLS and the URL does not, and the reverse.
func TestTLSMixUps(t *testing.T) {
	t.Parallel()
	cert, key := redistest.SelfSigned(t, t.TempDir())
	tlsPort := freePort(t)
	server := redistest.Start(t, "--tls-port", tlsPort, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	secure := net.JoinHostPort("127.0.0.1", tlsPort)
	ca := "?" + url.Values{"tls_ca": {cert}}.Encode()
	for _, c := range []struct{ url, says string }{
		{"redis://" + secure, "begin the URL with rediss"},
		{"rediss://" + server.Addr() + ca, "begin the URL with redis, not rediss"},
		{"redis://" + server.Addr() + ca, "tls_ca"},
		{"redis://" + server.Addr() + "?tls_server_name=x", "rediss://"},
		{"redis-sentinel://" + server.Addr() + "?master=m&tls_cert=x&tls_key=x", "rediss-sentinel://"},
		{"redis-cluster://" + server.Addr() + "?tls_ca=" + cert, "rediss-cluster://"},
		{"redis-sentinel://" + secure + "?master=m", "begin the URL with rediss"},
		{"redis-cluster://" + secure, "begin the URL with rediss"},
	} {
		t.Run(c.url, func(t *testing.T) {
			t.Parallel()
			open := func() (*store.Store, error) { return redisstore.Open(t.Context(), c.url, patient()) }
			if strings.Contains(c.url, "-cluster:") {
				open = func() (*store.Store, error) { return redisstore.Open(t.Context(), c.url, patient()) }
			}
			_, err := open()
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want words with %q", err, c.says)
			}
		})
	}
}

// A certificate that is renewed in its file is shown at the next connection: the server trusts
// the new one only.
func TestRotatedClientCertificate(t *testing.T) {
	cert, key := redistest.SelfSigned(t, t.TempDir())
	mine := t.TempDir()
	own, ownKey := redistest.SelfSigned(t, mine)
	tlsPort := freePort(t)
	server := redistest.Start(t, "--tls-port", tlsPort, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", own, "--tls-auth-clients", "yes")
	q := url.Values{"tls_ca": {cert}, "tls_cert": {own}, "tls_key": {ownKey}}
	s := openURL(t, "rediss://"+net.JoinHostPort("127.0.0.1", tlsPort)+"?"+q.Encode())
	acquire(t, s, request("before"))
	redistest.SelfSigned(t, mine)
	server.Text(t, "CONFIG", "SET", "tls-ca-cert-file", own)
	server.Text(t, "CLIENT", "KILL", "TYPE", "pubsub")
	eventually.True(t, "locks are granted again", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("after")})
		return err == nil
	})
}

// The servers of a cluster and others are not one store.
func TestClusterIsNotCombinedWithOthers(t *testing.T) {
	for _, url := range []string{"redis-cluster://a redis://b", "redis-sentinel://a?master=m redis-cluster://b"} {
		if _, err := redisstore.Open(t.Context(), url, nil); !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "cannot be combined") {
			t.Errorf("Open of %s: %v, want an error that says that they cannot be combined", url, err)
		}
	}
}
