package redisstore_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// The store asks for the credentials on every connection, so a password can change while the
// store is open.
func TestCredentials(t *testing.T) {
	server := redistest.Start(t)
	server.Text(t, "ACL", "SETUSER", "locker", "on", ">first", "~*", "&*", "+@all")
	var password atomic.Value
	password.Store("first")
	var asked atomic.Int64
	o := &redisstore.Options{Credentials: func(ctx context.Context) (string, string, error) {
		asked.Add(1)
		if _, bounded := ctx.Deadline(); !bounded {
			t.Error("the context of Credentials does not end")
		}
		return "locker", password.Load().(string), nil
	}}
	s := openAt(t, "redis://"+server.Addr(), o)
	acquire(t, s, request("a"))
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times for one connection, want once", n)
	}
	password.Store("second")
	server.Text(t, "ACL", "SETUSER", "locker", "resetpass", ">second")
	server.Text(t, "CLIENT", "KILL", "USER", "locker")
	eventually.True(t, "the new password is used", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("b")})
		return err == nil
	})
	if n := asked.Load(); n < 2 {
		t.Errorf("asked %d times for two connections, want at least twice", n)
	}
}

// The error of Credentials is in that of Open.
func TestCredentialsFail(t *testing.T) {
	server := redistest.Start(t)
	o := &redisstore.Options{Credentials: func(context.Context) (string, string, error) {
		return "", "", errors.New("the vault is sealed")
	}}
	if _, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), o); err == nil || !strings.Contains(err.Error(), "the vault is sealed") {
		t.Errorf("opened with %v, want the error of Credentials", err)
	}
	if _, err := redisstore.Open(t.Context(), "redis://:hunter2@"+server.Addr(), o); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "Credentials") {
		t.Errorf("opened with %v, want a refusal of two sources of the password", err)
	}
}

// A server can be reached over its unix socket.
func TestUnixSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := redistest.Start(t, "--unixsocket", socket)
	s := openAt(t, "unix://"+socket+"?db=3&max_ttl=50s", nil)
	r := request("a")
	acquire(t, s, r)
	if got := server.Text(t, "INFO", "keyspace"); !strings.Contains(got, "db3") {
		t.Errorf("the lock is not in database 3: %q, want text with %q", got, "db3")
	}
	if n := strings.Count(server.Text(t, "CLIENT", "LIST"), "laddr="+socket); n != 1 {
		t.Errorf("%d connections over the socket, want 1", n)
	}
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
		t.Error(err)
	}
	if ttl := s.Caps().MaxTTL; ttl.Seconds() != 50 {
		t.Errorf("max_ttl is %v, want 50s", ttl)
	}
}
