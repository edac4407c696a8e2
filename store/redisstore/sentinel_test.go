package redisstore_test

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
	"github.com/leasehold-dev/leasehold/store/redisstore/redisadmin"
	"github.com/leasehold-dev/leasehold/store/storetest"
)

// openAt opens a store and closes it at the end of the test.
func openAt(t *testing.T, url string, o *redisstore.Options) *store.Store {
	t.Helper()
	if o == nil {
		o = patient()
	}
	s, err := redisstore.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sentinelURL(sentinels ...interface{ Addr() string }) string {
	return "redis-sentinel://" + strings.Join(addrs(sentinels), ",") + "?master=" + redistest.MasterName
}

func TestConformanceOverSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	another := func(t *testing.T) *store.Store {
		return openAt(t, w.URL(), patient())
	}
	storetest.Run(t, another, storetest.Options{Second: another, AnyAfterExpiry: true})
}

// Open skips sentinels that are down, silent, no sentinels or do not know the master, and waits
// for none of them once one has answered.
func TestSentinelsThatDoNotAnswer(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	down, other := redistest.Start(t), redistest.Start(t)
	down.Kill()
	silent := faultproxy.New(t, w.Sentinels[0].Addr())
	silent.Blackhole()
	const patience = 20 * time.Second
	var log strings.Builder
	start := time.Now()
	s := openAt(t, sentinelURL(down, silent, other, w.Sentinels[0]), &redisstore.Options{
		ConnectTimeout: patience, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if took := time.Since(start); took > patience/2 {
		t.Errorf("opening took %v: it waited for the silent sentinel", took)
	}
	takes(t, s, []*redistest.Server{w.Master}, request("a"))
	if c := s.Caps(); c.Class != store.Efficiency || c.Engine != "redis" || c.Nodes != 1 {
		t.Errorf("caps: %+v, want the class %v on one node", c, store.Efficiency)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "failover can lose locks") {
		t.Errorf("warnings:\n%s\nwant one, about the guarantee", log.String())
	}
	silent.Pass()
	silent.Cut()
}

// A class that the store does not give is refused before anything is sent.
func TestSentinelsDoNotMakeItCrashSafe(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1)
	s := openAt(t, w.URL(), nil)
	r := request("a")
	r.Require = store.CrashSafe
	if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: r}); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("acquire: %v, want ErrUnsupported", err)
	}
	if _, err := s.Wait(t.Context(), store.WaitRequest{Lease: r}, nil); !errors.Is(err, store.ErrUnsupported) {
		t.Errorf("wait: %v, want ErrUnsupported", err)
	}
	if keys := w.Master.Keys(t); len(keys) != 0 {
		t.Errorf("the server has the keys %q, want none", keys)
	}
	for what, err := range map[string]error{
		"bootstrap": func() error {
			_, err := redisadmin.Bootstrap(t.Context(), w.URL(), nil, true)
			return err
		}(),
		"replace": redisadmin.Replace(t.Context(), w.URL(), nil, nil),
	} {
		if err == nil || !strings.Contains(err.Error(), what+" is not for redis-sentinel") {
			t.Errorf("%s: %v, want that it is not for redis-sentinel", what, err)
		}
	}
}

// If no sentinel names a master, the error has the answer of each of them.
func TestNoSentinelKnows(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 1, "requirepass s3cr3t-pass")
	down, plain := redistest.Start(t), redistest.Start(t)
	down.Kill()
	stranger := redistest.StartWatched(t, 1)
	hosts := strings.Join([]string{down.Addr(), plain.Addr(), stranger.Sentinels[0].Addr(), w.Sentinels[0].Addr()}, ",")
	for address, password := range map[string]string{
		"redis-sentinel://" + hosts + "?master=cache":                                            "requires a password of its own",
		"redis-sentinel://" + hosts + "?master=cache&sentinel_password=s3cr3t-wrong":             "WRONGPASS",
		"redis-sentinel://me:s3cr3t-db@" + hosts + "?master=cache&sentinel_password=s3cr3t-pass": `no master "cache"`,
	} {
		_, err := redisstore.Open(t.Context(), address, patient())
		if !errors.Is(err, store.ErrQuorum) {
			t.Fatalf("open: %v, want a *store.QuorumError", err)
		}
		for _, say := range []string{
			down.Addr(), "connection refused", plain.Addr(), stranger.Sentinels[0].Addr(),
			w.Sentinels[0].Addr(), password,
		} {
			if !strings.Contains(err.Error(), say) {
				t.Errorf("%v\nwant text with %q", err, say)
			}
		}
		if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%v shows a password", err)
		}
	}
}

// User and password of the URL are for the master, those of the settings for the sentinels.
func TestCredentialsOfSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	master := redistest.Start(t, "--user", "locker", "on", ">db-pass", "~*", "&*", "+@all")
	w := redistest.Watch(t, master, 1, []string{"--user", "locker", "on", ">db-pass", "~*", "&*", "+@all"}, "user asker on >asker-pass +@all")
	hosts := w.Sentinels[0].Addr()
	url := "redis-sentinel://locker:db-pass@" + hosts + "/3?master=mymaster"
	for _, s := range []*store.Store{
		openAt(t, url+"&sentinel_username=asker&sentinel_password=asker-pass", patient()),
		openAt(t, url, &redisstore.Options{NodeTimeout: long, ConnectTimeout: long, SentinelUsername: "asker", SentinelPassword: "asker-pass"}),
	} {
		r := request("a")
		acquire(t, s, r)
		if list := master.Text(t, "CLIENT", "LIST"); !strings.Contains(list, "db=3") || !strings.Contains(list, "user=locker") {
			t.Errorf("clients of the master:\n%s\nwant the user locker in database 3", list)
		}
		if list := w.Sentinels[0].Text(t, "CLIENT", "LIST"); strings.Contains(list, "user=locker") {
			t.Errorf("clients of the sentinel:\n%s\nwant no user locker", list)
		}
		if err := s.Release(t.Context(), store.ReleaseRequest{Lease: r}); err != nil {
			t.Error(err)
		}
	}
	_, err := redisstore.Open(t.Context(), "redis-sentinel://locker:db-wrong@"+hosts+"?master=mymaster", patient())
	if err == nil || !strings.Contains(err.Error(), "WRONGPASS") || !strings.Contains(err.Error(), master.Addr()) || strings.Contains(err.Error(), "db-wrong") {
		t.Errorf("with a wrong password for the master: %v, want WRONGPASS and the master", err)
	}
}

// A sentinel may be wrong. The server that it names is not used if that reports that it is no
// master.
func TestSentinelNamesAReplica(t *testing.T) {
	master := redistest.Start(t)
	host, port, _ := net.SplitHostPort(master.Addr())
	replica := redistest.Start(t, "--replicaof", host, port)
	for _, s := range []*redistest.Server{master, replica} {
		s.Text(t, "ACL", "SETUSER", "modest", "on", "nopass", "~*", "&*", "+@all", "-info")
	}
	liar, honest := newFakeSentinel(t, replica.Addr(), 1), newFakeSentinel(t, master.Addr(), 1)
	for _, user := range []string{"", "modest:x@"} {
		alone := strings.Replace(sentinelURL(liar), "://", "://"+user, 1)
		_, err := redisstore.Open(t.Context(), alone, nil)
		if err == nil || !strings.Contains(err.Error(), "not the master") || !strings.Contains(err.Error(), replica.Addr()) {
			t.Errorf("%s: %v, want an error that it is not the master", alone, err)
		}
		s := openAt(t, strings.Replace(sentinelURL(liar, honest), "://", "://"+user, 1), nil)
		r := request("a" + user)
		takes(t, s, []*redistest.Server{master}, r)
		// Once the sentinel names the master, the store uses that.
		liar.name(master.Addr(), 2)
		openAt(t, alone, nil)
		liar.name(replica.Addr(), 1)
	}
}

// A sentinel that was cut off from the others names a master that was replaced, and that may
// still regard itself as one. The store does not follow it.
func TestSentinelThatIsBehind(t *testing.T) {
	t.Parallel() // it mostly waits
	old, now := redistest.Start(t), redistest.Start(t)
	behind, ahead := newFakeSentinel(t, old.Addr(), 1), newFakeSentinel(t, now.Addr(), 2)
	s := openAt(t, sentinelURL(behind, ahead), nil)
	takes(t, s, []*redistest.Server{now}, request("a"))
	ahead.Close()
	// The store keeps its master, however often it asks the other sentinel.
	_, before := behind.seen()
	eventually.True(t, "the sentinel that is behind is asked some more", func() bool {
		_, n := behind.seen()
		return n > before+2
	})
	takes(t, s, []*redistest.Server{now}, request("b"))
	// It does not use the old master either if it has to connect again.
	now.Kill()
	eventually.True(t, "the error says that the sentinel is behind", func() bool {
		_, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("c")})
		return err != nil && strings.Contains(err.Error(), "up-to-date") && strings.Contains(err.Error(), old.Addr())
	})
	if keys := old.Keys(t); len(keys) != 0 {
		t.Errorf("the server that was replaced has the keys %q, want none", keys)
	}
}

// Connections to the sentinels and to the master use TLS.
func TestSentinelsOverTLS(t *testing.T) {
	cert, key := redistest.SelfSigned(t, t.TempDir())
	port := freePort(t)
	master := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	sentinel := serveSentinel(t, l, "127.0.0.1:"+port, 1)
	q := url.Values{"tls_ca": {cert}, "tls_cert": {cert}, "tls_key": {key}, "master": {"mymaster"}}
	s := openAt(t, "rediss-sentinel://"+sentinel.Addr()+"?"+q.Encode(), patient())
	takes(t, s, []*redistest.Server{master}, request("a"))
	_, err = redisstore.Open(t.Context(), "rediss-sentinel://"+sentinel.Addr()+"?master=mymaster", patient())
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: %v, want a refusal of the certificate", err)
	}
}
