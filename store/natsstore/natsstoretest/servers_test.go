package natsstoretest

import (
	"fmt"
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/store/natsstore"
	"github.com/leasehold-dev/leasehold/store/recordstore"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// start starts a server, and ends it with the test.
func start(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	s := run(t, o)
	t.Cleanup(func() { stop(s) })
	return s
}

func run(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	o.Host, o.JetStream, o.NoLog, o.NoSigs = "127.0.0.1", true, true, true
	if o.Port == 0 {
		o.Port = -1
	}
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server does not accept connections")
	}
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// cluster is three servers that keep the same streams. Each can be stopped and started again.
type cluster struct {
	t       *testing.T
	options []server.Options
	servers []*server.Server
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var routes []*url.URL
	ports := freePorts(t, 6)
	for i := range 3 {
		u, err := url.Parse(fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, u)
	}
	for i := range 3 {
		c.options = append(c.options, server.Options{
			ServerName: fmt.Sprintf("n%d", i), StoreDir: t.TempDir(), SyncAlways: true, Port: ports[3+i],
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]}, Routes: routes,
		})
		c.servers = append(c.servers, run(t, c.options[i]))
	}
	t.Cleanup(func() {
		for _, s := range c.servers {
			stop(s)
		}
	})
	return c
}

func (c *cluster) addresses() (all []string) {
	for _, o := range c.options {
		all = append(all, fmt.Sprintf("127.0.0.1:%d", o.Port))
	}
	return all
}

// restart stops a server and starts it again with its data.
func (c *cluster) restart(i int) {
	stop(c.servers[i])
	c.servers[i] = run(c.t, c.options[i])
}

// leader returns the number of the server that leads the stream of the default bucket, or -1.
func (c *cluster) leader() int {
	for i, s := range c.servers {
		if s.Running() && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, "LEASEHOLD_default") {
			return i
		}
	}
	return -1
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// open opens a store, and closes it with the test.
func open(t *testing.T, servers []string, o *natsstore.Options) *recordstore.Store {
	t.Helper()
	s, err := natsstore.Open(t.Context(), servers, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
