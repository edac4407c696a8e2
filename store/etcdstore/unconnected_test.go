package etcdstore_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

// nothing returns an address at which nothing listens.
func nothing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// An error about a port without a listener says so, and not that a server was too slow.
func TestOpenSaysThatNothingListens(t *testing.T) {
	t.Parallel()
	addr := nothing(t)
	for _, user := range []string{"", "me"} {
		st, err := etcdstore.Open(t.Context(), urlOf(addr), &etcdstore.Options{Timeout: 2 * time.Second, Username: user, Password: user})
		if err == nil {
			st.Close()
			t.Fatal("opened a store without a server")
		}
		if text := err.Error(); !strings.Contains(text, "etcd: "+addr+": cannot connect: ") || !strings.Contains(text, "refused") || strings.Contains(text, "no answer") {
			t.Errorf("user %q: open: %s, want why it cannot connect to %s", user, text, addr)
		}
	}
}

// While a server is down, the store tries to connect again every second. Each of gRPC's own
// tries would be later than the one before, by up to two minutes.
func TestReconnectsSoon(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	var tries atomic.Int32
	dialer := grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		if tries.Add(1); down.Load() {
			return nil, net.ErrClosed
		}
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	m := launch(t, etcdtest.Options{}).Members[0]
	s := open(t, []string{m.Addr}, etcdstore.Options{DialOptions: []grpc.DialOption{dialer}})
	down.Store(true)
	m.Kill()
	eventually.True(t, "twelve tries to connect", func() bool { return tries.Load() > 12 })
	if err := m.Restart(); err != nil {
		t.Fatal(err)
	}
	down.Store(false)
	acquire(t, s, request("a", time.Minute))
}
