package rueidis_test

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

	"github.com/redis/rueidis"

	"github.com/leasehold-dev/leasehold"
	adapter "github.com/leasehold-dev/leasehold/adapters/rueidis"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
)

// wantsSame checks that the store and a client with options o talk to the same database.
func wantsSame(t *testing.T, what string, st *store.Store, err error, o rueidis.ClientOption) {
	t.Helper()
	adaptertest.SameDatabase(t, what, st, err, func(ctx context.Context, name string) (int64, error) {
		o.DisableCache = true
		client, err := rueidis.NewClient(o)
		if err != nil {
			return 0, err
		}
		defer client.Close()
		return client.Do(ctx, client.B().Exists().Key(name).Build()).AsInt64()
	})
}

// The store connects to each server that rueidis connects to with the same options.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "redis")
	server, secure, roots := redistest.StartTLS(t, "--requirepass", "secret", "--unixsocket", path)
	socket, err := rueidis.ParseURL("unix://default:secret@" + path + "?db=2")
	if err != nil {
		t.Fatal(err)
	}
	var called atomic.Int64
	dial := socket.DialCtxFn
	socket.DialCtxFn = func(ctx context.Context, addr string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
		called.Add(1)
		return dial(ctx, addr, d, c)
	}
	trusting := &tls.Config{RootCAs: roots}
	plain, safe := []string{server.Addr()}, []string{secure}
	for what, o := range map[string]rueidis.ClientOption{
		"password":          {InitAddress: plain, Password: "secret"},
		"user and database": {InitAddress: plain, Username: "default", Password: "secret", SelectDB: 3},
		"no host":           {InitAddress: []string{plain[0][strings.LastIndex(plain[0], ":"):]}, Password: "secret"},
		"socket":            socket,
		"TLS":               {InitAddress: safe, Password: "secret", TLSConfig: trusting},
		"credentials": {InitAddress: plain, Password: "wrong", AuthCredentialsFn: func(c rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			called.Add(1)
			if c.Address.String() != plain[0] {
				return rueidis.AuthCredentials{}, fmt.Errorf("asked for the credentials of %s", c.Address)
			}
			return rueidis.AuthCredentials{Password: "secret"}, nil
		}},
		"dialer": {InitAddress: []string{"nowhere.invalid:1"}, Password: "secret", TLSConfig: trusting, DialCtxFn: func(ctx context.Context, _ string, d *net.Dialer, c *tls.Config) (net.Conn, error) {
			called.Add(1)
			return (&tls.Dialer{NetDialer: d, Config: c}).DialContext(ctx, "tcp", secure)
		}},
		"dialer without a context": {InitAddress: []string{"nowhere.invalid:1"}, Password: "secret", DialFn: func(_ string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
			called.Add(1)
			return d.Dial("tcp", plain[0])
		}},
	} {
		called.Store(0)
		o.ForceSingleClient = true
		st, err := adapter.Open(t.Context(), o, adaptertest.Patient())
		if (o.AuthCredentialsFn != nil || o.DialFn != nil || o.DialCtxFn != nil) && called.Load() == 0 {
			t.Errorf("%s: the function was not called, want it called", what)
		}
		wantsSame(t, what, st, err, o)
	}
	if _, err := adapter.Open(t.Context(), rueidis.ClientOption{InitAddress: append(plain, safe...)}, nil); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("two servers: %v, want %v", err, store.ErrInvalid)
	}
}

// The store connects to the master of sentinels and to a cluster, too.
func TestOpenSeveral(t *testing.T) {
	watched := redistest.StartWatched(t, 1)
	o := rueidis.ClientOption{InitAddress: []string{watched.Sentinels[0].Addr()}, Sentinel: rueidis.SentinelOption{MasterSet: "mymaster"}}
	st, err := adapter.Open(t.Context(), o, adaptertest.Patient())
	wantsSame(t, "sentinels", st, err, o)

	o = rueidis.ClientOption{}
	for _, s := range redistest.StartCluster(t, 3, 0).Masters {
		o.InitAddress = append(o.InitAddress, s.Addr())
	}
	cluster, err := adapter.OpenCluster(t.Context(), o, adaptertest.Patient())
	wantsSame(t, "cluster", cluster, err, o)
}

// Sentinels with and a master without TLS, or the other way round, are refused: the store
// would send the credentials of one of them in plain text.
func TestRefusesTLSOfOneSide(t *testing.T) {
	for what, o := range map[string]rueidis.ClientOption{
		"the master's":   {TLSConfig: &tls.Config{}},
		"the sentinels'": {Sentinel: rueidis.SentinelOption{TLSConfig: &tls.Config{}}},
	} {
		o.InitAddress, o.Sentinel.MasterSet = []string{"127.0.0.1:1"}, "mymaster"
		st, err := adapter.Open(t.Context(), o, nil)
		if err == nil {
			st.Close()
		}
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s TLS alone: %v, want %v", what, err, store.ErrInvalid)
		}
	}
}

func ExampleOpen() {
	server, err := redistest.Launch(redistest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	o := rueidis.ClientOption{InitAddress: []string{server.Addr()}} // as for rueidis.NewClient

	ctx := context.Background()
	st, err := adapter.Open(ctx, o, adaptertest.Patient()) // or nil
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
