package goredis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/goredis"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// wantsSame checks that the store and the client talk to the same database.
func wantsSame(t *testing.T, what string, st *store.Store, err error, client redis.UniversalClient) {
	t.Helper()
	defer client.Close()
	adaptertest.SameDatabase(t, what, st, err, func(ctx context.Context, name string) (int64, error) {
		return client.Exists(ctx, name).Result()
	})
}

// The store connects to each server that go-redis connects to with the same options.
func TestOpen(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "redis")
	server, secure, roots := redistest.StartTLS(t, "--requirepass", "secret", "--unixsocket", socket)
	trusting := &tls.Config{RootCAs: roots}
	var asked, dialed atomic.Int64
	for what, o := range map[string]*redis.Options{
		"password":          {Addr: server.Addr(), Password: "secret"},
		"user and database": {Addr: server.Addr(), Username: "default", Password: "secret", DB: 3},
		"no host":           {Addr: server.Addr()[strings.LastIndex(server.Addr(), ":"):], Password: "secret"},
		"socket":            {Addr: socket, Password: "secret", DB: 2},
		"TLS":               {Addr: secure, Password: "secret", TLSConfig: trusting, DialTimeout: 5 * time.Second},
		"credentials": {Addr: server.Addr(), Password: "wrong", CredentialsProvider: func() (string, string) {
			asked.Add(1)
			return "default", "secret"
		}},
		"credentials with a context": {Addr: server.Addr(), CredentialsProviderContext: func(context.Context) (string, string, error) {
			asked.Add(1)
			return "", "secret", nil
		}, CredentialsProvider: func() (string, string) { return "", "wrong" }},
		"dialer": {Addr: "nowhere.invalid:1", Password: "secret", TLSConfig: trusting, Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
			dialed.Add(1)
			return (&tls.Dialer{Config: trusting}).DialContext(ctx, network, secure)
		}},
	} {
		asked.Store(0)
		dialed.Store(0)
		st, err := goredis.Open(t.Context(), o, adaptertest.Patient())
		if o.CredentialsProvider != nil && asked.Load() == 0 || o.Dialer != nil && dialed.Load() == 0 {
			t.Errorf("%s: the function was not called, want it called", what)
		}
		wantsSame(t, what, st, err, redis.NewClient(o))
	}
}

// The store connects to the master of sentinels and to a cluster, too.
func TestOpenSeveral(t *testing.T) {
	watched := redistest.StartWatched(t, 1)
	failover := &redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: []string{watched.Sentinels[0].Addr()}}
	st, err := goredis.OpenFailover(t.Context(), failover, adaptertest.Patient())
	wantsSame(t, "sentinels", st, err, redis.NewFailoverClient(failover))

	members := &redis.ClusterOptions{}
	for _, s := range redistest.StartCluster(t, 3, 0).Masters {
		members.Addrs = append(members.Addrs, s.Addr())
	}
	cluster, err := goredis.OpenCluster(t.Context(), members, adaptertest.Patient())
	wantsSame(t, "cluster", cluster, err, redis.NewClusterClient(members))
}

type streaming struct {
	auth.StreamingCredentialsProvider
}

// Options that the store cannot use are refused, and not ignored.
func TestRefuses(t *testing.T) {
	_, err := goredis.Open(t.Context(), &redis.Options{StreamingCredentialsProvider: streaming{}}, nil)
	if !errors.Is(err, store.ErrInvalid) {
		t.Errorf("streaming credentials: %v, want ErrInvalid", err)
	}
	_, err = goredis.Open(t.Context(), &redis.Options{Addr: "10.0.0.1:6379,10.0.0.2:6379"}, nil)
	if !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two servers in one address: %v, want ErrInvalid", err)
	}
}

func ExampleOpen() {
	server, err := redistest.Launch(redistest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	o := &redis.Options{Addr: server.Addr()} // as for redis.NewClient

	ctx := context.Background()
	st, err := goredis.Open(ctx, o, adaptertest.Patient()) // or nil
	if err != nil {
		fmt.Println(err)
		return
	}
	defer st.Close()
	err = leasehold.New(st, nil).Mutex("report").Do(ctx, func(context.Context, *leasehold.Lease) error {
		fmt.Println("locked")
		return nil
	})
	fmt.Println(err)
	// Output:
	// locked
	// <nil>
}
