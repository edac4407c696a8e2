package redisstore_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// tunnel dials by names that no resolver knows.
type tunnel struct {
	leads map[string]string // from the name in the URL to an address

	mu     sync.Mutex
	dialed map[string]int
}

func (u *tunnel) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	u.mu.Lock()
	if u.dialed == nil {
		u.dialed = map[string]int{}
	}
	u.dialed[addr]++
	u.mu.Unlock()
	to, ok := u.leads[addr]
	if !ok {
		return nil, errors.New("the tunnel does not lead there")
	}
	return (&net.Dialer{}).DialContext(ctx, network, to)
}

// Options.Dial opens every connection: to servers, over TLS as well, to sentinels and
// the master that they name, and to the members of a cluster.
func TestDial(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("server", func(t *testing.T) {
		u := &tunnel{leads: map[string]string{"locks.internal:6379": redistest.Start(t).Addr()}}
		s := openAt(t, "redis://locks.internal", &redisstore.Options{Dial: u.dial})
		acquire(t, s, request("a"))
		if _, err := redisstore.Open(t.Context(), "redis://elsewhere.internal", &redisstore.Options{Dial: u.dial}); err == nil || !strings.Contains(err.Error(), "does not lead there") {
			t.Errorf("opened with %v, want the error of Dial", err)
		}
	})
	t.Run("TLS", func(t *testing.T) {
		cert, key := redistest.SelfSigned(t, t.TempDir())
		port := freePort(t)
		redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "yes")
		u := &tunnel{leads: map[string]string{"locks.internal:6380": "127.0.0.1:" + port}}
		q := url.Values{"tls_ca": {cert}, "tls_cert": {cert}, "tls_key": {key}, "tls_server_name": {"127.0.0.1"}}
		s := openAt(t, "rediss://locks.internal:6380?"+q.Encode(), &redisstore.Options{Dial: u.dial})
		acquire(t, s, request("a"))
		q.Del("tls_server_name")
		if _, err := redisstore.Open(t.Context(), "rediss://locks.internal:6380?"+q.Encode(), &redisstore.Options{Dial: u.dial}); err == nil || !strings.Contains(err.Error(), "locks.internal") {
			t.Errorf("opened with %v, want a certificate that is not for locks.internal", err)
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		w := redistest.StartWatched(t, 1)
		master := w.Master.Addr()
		u := &tunnel{leads: map[string]string{"watch.internal:26379": w.Sentinels[0].Addr(), master: master}}
		s := openAt(t, "redis-sentinel://watch.internal?master="+redistest.MasterName, &redisstore.Options{Dial: u.dial})
		acquire(t, s, request("a"))
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.dialed["watch.internal:26379"] == 0 || u.dialed[master] == 0 {
			t.Errorf("dialed %v, want the sentinel and the master", u.dialed)
		}
	})
	t.Run("cluster", func(t *testing.T) {
		c := redistest.StartCluster(t, 3, 0)
		u := &tunnel{leads: map[string]string{"seed.internal:6379": c.Masters[0].Addr()}}
		for _, m := range c.Masters {
			u.leads[m.Addr()] = m.Addr()
		}
		s, err := redisstore.Open(t.Context(), "redis-cluster://seed.internal", &redisstore.Options{Dial: u.dial})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("a")}); err != nil {
			t.Error(err)
		}
	})
}

// A server that turns a client away answers before it has read anything, and closes the connection.
// The error says why all the same.
func TestServerThatTurnsClientsAway(t *testing.T) {
	for reply, want := range map[string]string{
		"-DENIED Redis is running in protected mode because protected mode is enabled and no password is set": "protected mode: the server has no password",
		"-ERR max number of clients reached": "raise its maxclients",
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte(reply + "\r\n"))
				c.Close()
			}
		}()
		for range 20 { // whether the client has written by then is a matter of luck
			_, err := redisstore.Open(t.Context(), "redis://"+l.Addr().String(), nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want text with %q", err, want)
			}
		}
		l.Close()
	}
}
