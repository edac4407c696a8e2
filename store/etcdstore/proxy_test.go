package etcdstore_test

import (
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// Etcd's grpc-proxy answers keep-alives when it sends its own, so a store is not opened through it.
func TestProxyIsRefused(t *testing.T) {
	t.Parallel()
	for version, program := range map[string]func() (string, error){"installed": etcdtest.Installed, "current": etcdtest.Current} {
		t.Run(version, func(t *testing.T) {
			etcd, err := program()
			if err != nil {
				t.Fatal(err)
			}
			c, err := etcdtest.Launch(etcdtest.Options{Program: etcd})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			at := l.Addr().String()
			l.Close()
			proxy := exec.Command(etcd, "grpc-proxy", "start", "--endpoints="+c.Endpoints()[0], "--listen-addr="+at, "--advertise-client-url=")
			if err := proxy.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = proxy.Process.Kill()
				_ = proxy.Wait()
			})
			eventually.True(t, "the proxy listens", func() bool {
				conn, err := net.Dial("tcp", at)
				if err == nil {
					conn.Close()
				}
				return err == nil
			})
			s, err := etcdstore.Open(t.Context(), urlOf(at), &etcdstore.Options{Timeout: patience})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), at+" is etcd's grpc-proxy") {
				t.Errorf("open: %v, want that it is a proxy", err)
			}
			open(t, c.Endpoints(), etcdstore.Options{Timeout: patience})
		})
	}
}
