package redisstore_test

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
)

// Each kind of trouble gives an error that names the node and says what to do, and leaves no keys
// behind.
func TestTroubleIsNamed(t *testing.T) {
	t.Parallel() // it mostly waits
	const secret = "s3cr3t-pass"
	type trouble struct {
		prepare func(t *testing.T) (server *redistest.Server, url string)
		say     string // part of the message
		is      error
	}
	plain := func(args ...string) func(t *testing.T) (*redistest.Server, string) {
		return func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t, args...)
			return s, "redis://" + s.Addr()
		}
	}
	for name, c := range map[string]trouble{
		"Down": {func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t)
			s.Kill()
			return s, "redis://" + s.Addr()
		}, "connection refused", store.ErrQuorum},
		"NoPassword": {plain("--requirepass", secret), "NOAUTH", store.ErrQuorum},
		"WrongPassword": {func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t, "--requirepass", "another")
			return s, "redis://:" + secret + "@" + s.Addr()
		}, "WRONGPASS", store.ErrQuorum},
		"OutOfMemory":    {plain("--maxmemory", "1mb", "--maxmemory-policy", "noeviction"), "out of memory", store.ErrQuorum},
		"TooFewReplicas": {plain("--min-replicas-to-write", "1"), "too few replicas (min-replicas-to-write)", store.ErrQuorum},
		"WrongType": {func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t)
			s.Text(t, "LPUSH", "a", "x")
			return s, "redis://" + s.Addr()
		}, "not a lock", store.ErrKindMismatch},
		"WrongTypeOfCounter": {func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t)
			s.Text(t, "LPUSH", "{a}:token", "x")
			return s, "redis://" + s.Addr()
		}, "not a lock", store.ErrKindMismatch},
		"Replica": {func(t *testing.T) (*redistest.Server, string) {
			master := redistest.Start(t)
			host, port, _ := strings.Cut(master.Addr(), ":")
			s := redistest.Start(t, "--replicaof", host, port)
			eventually.True(t, "the replica follows", func() bool {
				return strings.Contains(s.Text(t, "INFO", "replication"), "master_link_status:up")
			})
			return s, "redis://" + s.Addr()
		}, "replica", store.ErrQuorum},
		"Loading": {func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t, "--enable-debug-command", "yes", "--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024")
			s.Text(t, "DEBUG", "POPULATE", "20000")
			s.Text(t, "SET", "x", "y")
			s.Text(t, "SAVE")
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := s.RestartLoading(); err != nil {
				t.Fatal(err)
			}
			return s, "redis://" + s.Addr()
		}, "still reading its data", store.ErrQuorum},
		"NoPermission": {func(t *testing.T) (*redistest.Server, string) {
			s := redistest.Start(t)
			s.Text(t, "ACL", "SETUSER", "reader", "on", ">"+secret, "~*", "+@connection", "+info", "+get")
			return s, "redis://reader:" + secret + "@" + s.Addr()
		}, "lacks a permission", store.ErrQuorum},
	} {
		t.Run(name, func(t *testing.T) {
			server, address := c.prepare(t)
			if name == "OutOfMemory" { // which fills it once it is up
				server.Text(t, "SETRANGE", "ballast", "2000000", "x")
			}
			err := func() error {
				s, err := redisstore.Open(t.Context(), address, patient())
				if err != nil {
					return err
				}
				defer s.Close()
				_, err = s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")})
				return err
			}()
			if err == nil {
				t.Fatalf("no error, want one that says %q", c.say)
			}
			text := err.Error()
			if !strings.Contains(text, c.say) || !strings.Contains(text, server.Addr()) || !errors.Is(err, c.is) {
				t.Errorf("%v\nwant %q, the node %s, and a match of %v", err, c.say, server.Addr(), c.is)
			}
			if strings.Contains(text, secret) {
				t.Errorf("%v shows the password", err)
			}
			if server.PID() != 0 && name != "Loading" && name != "WrongType" && server.Text(t, "EXISTS", "a") != "0" {
				t.Error("a key was left behind")
			}
		})
	}
}

// Error replies of old servers from inside a script are classified too.
func TestErrorsOfOldServers(t *testing.T) {
	for reply, want := range map[string]store.Outcome{
		"ERR Error running script (call to f_1b): @user_script:1: WRONGTYPE Operation against a key": store.WrongType,
		"LOADING Redis is loading the dataset in memory":                                             store.Loading,
		"ERR unknown command": store.Refused,
	} {
		if got, err := redisstore.Classify(reply); got != want || err == nil {
			t.Errorf("%q: %v (%v), want %v", reply, got, err, want)
		}
	}
}

// One server behind two addresses would vote twice.
func TestSameServerTwice(t *testing.T) {
	servers := redistest.StartN(t, 2)
	alias := faultproxy.New(t, servers[0].Addr())
	_, err := redisstore.Open(t.Context(), "redis://"+servers[0].Addr()+","+servers[1].Addr()+","+alias.Addr(), patient())
	if err == nil || !strings.Contains(err.Error(), "same server") || !strings.Contains(err.Error(), alias.Addr()) {
		t.Errorf("open: %v, want a refusal that names both addresses", err)
	}
	_, err = redisstore.Open(t.Context(), "redis://"+servers[0].Addr()+","+servers[0].Addr(), nil)
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("open with one address twice: %v, want an error that says so", err)
	}
}

// A second address of a server is also refused if it becomes reachable after the store was opened.
func TestSameServerTwiceLater(t *testing.T) {
	servers := redistest.StartN(t, 2)
	alias := faultproxy.New(t, servers[0].Addr())
	alias.RefuseNew()
	s := open(t, []string{servers[0].Addr(), servers[1].Addr(), alias.Addr()}, nil)
	r := request("a")
	acquire(t, s, r)
	alias.Pass()
	eventually.True(t, "the alias is refused by name", func() bool {
		st, err := s.Inspect(t.Context(), "a")
		return err == nil && st.Nodes[2].Outcome == store.Refused && strings.Contains(st.Nodes[2].Err.Error(), servers[0].Addr())
	})
}

func TestTTLOutOfBounds(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, &redisstore.Options{MaxTTL: 10 * time.Second})
	for _, ttl := range []time.Duration{0, -time.Second, time.Microsecond, 10*time.Second + 1} {
		r := request("a")
		r.TTL = ttl
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("TTL %v: %v, want ErrInvalid", ttl, err)
		}
	}
	if keys := server.Keys(t); len(keys) != 0 {
		t.Errorf("the server has the keys %q after refusals, want none", keys)
	}
}

// Locks are acquired, waited for, renewed and released over TLS, which has its own code to read and
// write.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := redistest.SelfSigned(t, dir)
	tlsPort := freePort(t)
	secure := redistest.Start(t, "--tls-port", tlsPort, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	address := "rediss://127.0.0.1:" + tlsPort
	q := url.Values{"tls_ca": {cert}, "tls_cert": {cert}, "tls_key": {key}}
	s, err := redisstore.Open(t.Context(), address+"?"+q.Encode(), patient())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, next := request("a"), waiter("a")
	token := acquire(t, s, first).Token
	if err := s.Renew(t.Context(), []store.Lease{first})[0]; err != nil {
		t.Error(err)
	}
	done := wait(t, t.Context(), s, []*redistest.Server{secure}, next)
	if err := s.Release(t.Context(), store.ReleaseRequest{Lease: first}); err != nil {
		t.Fatal(err)
	}
	g := granted(t, done)
	if g.Token <= token {
		t.Errorf("token %d after %d, want a larger one", g.Token, token)
	}
	mustRelease(t, s, next, g)
	nothingLeft(t, []*redistest.Server{secure})
	e, err := redisadmin.Examine(t.Context(), address+"?"+q.Encode(), nil, redisadmin.Scope{TTL: time.Second})
	if err != nil || e.Nodes[0].Outcome != store.Granted || len(e.Nodes[0].Lacking)+len(e.Nodes[0].Failing) > 0 {
		t.Errorf("examine over TLS: %+v, %v, want a usable node with all rights", e, err)
	}
	if _, err := redisstore.Open(t.Context(), address, patient()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: %v, want a refusal of the certificate", err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	free, err := port.Pick()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(free)
}

// If the name of the counter is in use for something else, no lock without a token is left.
func TestCounterOfAnotherType(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, []string{server.Addr()}, nil)
	server.Text(t, "RPUSH", "{a}:token", "x")
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); !errors.Is(err, store.ErrKindMismatch) {
		t.Errorf("acquire: %v, want %v", err, store.ErrKindMismatch)
	}
	if keys := server.Keys(t); len(keys) != 1 {
		t.Errorf("the server has the keys %q, want only {a}:token", keys)
	}
}
