package natsstoretest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/natsstore"
)

// The test program is a server as well, if configVar names the file of its configuration.
const configVar = "LEASEHOLD_TEST_NATS_CONFIG"

func TestMain(m *testing.M) {
	if file := os.Getenv(configVar); file != "" {
		fmt.Fprintln(os.Stderr, serve(file))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child.Goroutine))
}

// serve runs a server until the process is killed.
func serve(file string) error {
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		return err
	}
	s, err := server.NewServer(o)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	s.WaitForShutdown()
	return nil
}

// start starts a server, and ends it with the test.
func start(t testing.TB, o server.Options) *server.Server {
	t.Helper()
	s := run(t, o)
	t.Cleanup(func() { stop(s) })
	return s
}

func run(t testing.TB, o server.Options) *server.Server {
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
	s.ConfigureLogger()
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

// cluster is servers that keep the same streams, each a process. The routes between them go through
// proxies.
type cluster struct {
	t       *testing.T
	members []*member
}

type member struct {
	name      string
	address   string // for clients
	monitor   string // URL
	config    string // file
	log       string // file
	process   *child.Process
	toSmaller []*faultproxy.Proxy // to members with smaller numbers
}

// startCluster starts three servers that sync every write. The servers whose indexes are in late
// sync later.
func startCluster(t *testing.T, late ...int) *cluster { return startServers(t, 3, late...) }

func startServers(t *testing.T, n int, late ...int) *cluster {
	t.Helper()
	c := &cluster{t: t}
	ports := freePorts(t, 3*n)
	for i := range n {
		m := &member{
			name: fmt.Sprintf("n%d", i), address: fmt.Sprintf("127.0.0.1:%d", ports[3*i]), monitor: fmt.Sprintf("http://127.0.0.1:%d", ports[3*i+1]),
			config: t.TempDir() + "/nats.conf", log: t.TempDir() + "/log",
		}
		routes := []string{fmt.Sprintf(`"nats://127.0.0.1:%d"`, ports[3*i+2])} // itself: there has to be one
		for j := range i {
			p := faultproxy.New(t, fmt.Sprintf("127.0.0.1:%d", ports[3*j+2]))
			m.toSmaller = append(m.toSmaller, p)
			routes = append(routes, fmt.Sprintf("%q", "nats://"+p.Addr()))
		}
		sync := "always"
		if slices.Contains(late, i) {
			sync = "1s"
		}
		config := fmt.Sprintf("server_name: %s\nlog_file: %q\nlisten: %q\nhttp: %q\njetstream { store_dir: %q, sync_interval: %s }\n", m.name, m.log, m.address, m.monitor[len("http://"):], t.TempDir(), sync)
		if n > 1 { // What a server advertises to the others leads nowhere, so that all routes go through the proxies.
			config += fmt.Sprintf("cluster { name: c, listen: \"127.0.0.1:%d\", advertise: \"127.0.0.1:1\", routes: [%s] }\n", ports[3*i+2], strings.Join(routes, ", "))
		}
		if err := os.WriteFile(m.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		c.members = append(c.members, m)
	}
	for i := range c.members {
		t.Cleanup(func() {
			if p := c.members[i].process; p != nil {
				p.Kill()
			}
			if log, err := os.ReadFile(c.members[i].log); t.Failed() && err == nil {
				t.Logf("the last that server %d logged:\n%s", i, log[max(0, len(log)-2000):])
			}
		})
		c.start(i)
	}
	return c
}

// start starts a server, which finds what it has kept.
func (c *cluster) start(i int) {
	c.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), configVar+"="+c.members[i].config)
	p, err := child.Start(cmd)
	if err != nil {
		c.t.Fatal(err)
	}
	c.members[i].process = p
	eventually.True(c.t, "the server accepts connections", func() bool {
		conn, err := net.Dial("tcp", c.members[i].address)
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}

func (c *cluster) addresses() (all []string) {
	for _, m := range c.members {
		all = append(all, m.address)
	}
	return all
}

func (c *cluster) monitors() (all []string) {
	for _, m := range c.members {
		all = append(all, m.monitor)
	}
	return all
}

// cutOff has no server reach the one with a number, though its clients do.
func (c *cluster) cutOff(i int) { c.routes(i, (*faultproxy.Proxy).Blackhole) }

func (c *cluster) heal(i int) { c.routes(i, (*faultproxy.Proxy).Pass) }

func (c *cluster) routes(i int, do func(*faultproxy.Proxy)) {
	for n, m := range c.members {
		for j, p := range m.toSmaller {
			if n == i || j == i {
				do(p)
			}
		}
	}
}

// leader waits until one of the servers leads the stream of the default bucket, and returns its number.
func (c *cluster) leader() (leads int) {
	c.t.Helper()
	nc, err := nats.Connect(strings.Join(c.addresses(), ","), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		c.t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		c.t.Fatal(err)
	}
	eventually.True(c.t, "a server leads the stream", func() bool {
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Second)
		defer cancel()
		s, err := js.Stream(ctx, "LEASEHOLD_default")
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		leads = slices.IndexFunc(c.members, func(m *member) bool { return m.name == s.CachedInfo().Cluster.Leader })
		return leads >= 0
	})
	return leads
}

func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		p, err := port.Pick()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { port.Release(p) })
		ports = append(ports, p)
	}
	return ports
}

// open opens a store, and closes it with the test.
func open(t testing.TB, servers []string, o *natsstore.Options) *store.Store {
	t.Helper()
	s, err := natsstore.Open(t.Context(), "nats://"+strings.ReplaceAll(strings.Join(servers, ","), "nats://", ""), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
