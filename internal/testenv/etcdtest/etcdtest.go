// Package etcdtest starts real etcd servers, for tests and for the stories of the lab: one,
// or a cluster whose members can be killed, paused and cut off from each other and from
// clients. It brings no client.
//
// On Linux the kernel ends a server when the process that started it dies, in whatever
// way.
package etcdtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/faultproxy"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
)

// Goroutine is the function that waits for a running server; see child.Goroutine.
const Goroutine = child.Goroutine

// patience bounds every wait for a server. It is only used up if something is broken.
const patience = 60 * time.Second

// Options say how to run a cluster.
type Options struct {
	// Program is the server, from Installed or Current.
	Program string
	// Members is how many there are; zero means 1.
	Members int
	// Args are further arguments of every member, such as "--quota-backend-bytes=...".
	Args []string
	// Scheme is that of the clients' URLs; empty means http.
	Scheme string
}

// Cluster is a running cluster.
type Cluster struct {
	Members []*Member
	dir     string
}

// Member is one server of a cluster.
type Member struct {
	// Addr is the address for clients, "127.0.0.1:port".
	Addr string
	// Proxy, at ProxyAddr, is another address for clients, at which faults can be injected.
	// Clients that use it do not learn of Addr.
	Proxy *faultproxy.Proxy

	name, scheme string
	id           string // the ID by which members name each other
	args         []string
	program      string
	log          string
	peers        *peerProxy // nil if it is the only member
	proc         *child.Process
}

// ErrNotInstalled means that there is no etcd. Its text says what to install.
var ErrNotInstalled = errors.New(`etcd is not installed (or not in PATH), and a real one is needed. Install it and run again:
	Debian, Ubuntu   sudo apt-get install -y etcd-server etcd-client
	macOS            brew install etcd`)

// Installed returns the server of the system's packages. The error is ErrNotInstalled.
func Installed() (string, error) {
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", ErrNotInstalled
	}
	return path, nil
}

// Launch starts a cluster and waits until it has a leader. The caller must call Close.
func Launch(o Options) (*Cluster, error) {
	dir, err := os.MkdirTemp(memory(), "etcdtest-")
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		c := &Cluster{dir: dir}
		err := c.start(o)
		if err == nil {
			return c, nil
		}
		taken := c.logged("address already in use")
		c.end()
		if !taken || try == 10 {
			os.RemoveAll(dir)
			return nil, fmt.Errorf("etcdtest: %w", err)
		}
	}
}

// memory returns a directory in memory, if the system has one. etcd writes each change to disk,
// which is slow, and tests that kill a process do not need it.
func memory() string {
	const shared = "/dev/shm"
	if f, err := os.CreateTemp(shared, "etcdtest-"); err == nil {
		f.Close()
		os.Remove(f.Name())
		return shared
	}
	return ""
}

func (c *Cluster) start(o Options) error {
	n := max(1, o.Members)
	var initial []string
	var listen []string
	for i := range n {
		m := &Member{name: fmt.Sprint("m", i), program: o.Program, scheme: "http"}
		if o.Scheme != "" {
			m.scheme = o.Scheme
		}
		c.Members = append(c.Members, m)
		client, err := port.Pick()
		if err != nil {
			return err
		}
		peer, err := port.Pick()
		if err != nil {
			return err
		}
		m.Addr = fmt.Sprintf("127.0.0.1:%d", client)
		at := fmt.Sprintf("127.0.0.1:%d", peer)
		listen = append(listen, at)
		if n > 1 {
			if m.peers, err = newPeerProxy(at); err != nil {
				return err
			}
			at = m.peers.addr()
		}
		initial = append(initial, m.name+"=http://"+at)
		if m.Proxy, err = faultproxy.Listen(m.Addr); err != nil {
			return err
		}
	}
	for i, m := range c.Members {
		dir := filepath.Join(c.dir, m.name)
		m.log = filepath.Join(c.dir, m.name+".log")
		advertised := strings.TrimPrefix(initial[i], m.name+"=")
		m.args = append([]string{
			"--name=" + m.name, "--data-dir=" + dir,
			"--listen-client-urls=" + m.scheme + "://" + m.Addr, "--advertise-client-urls=" + m.scheme + "://" + m.Addr,
			"--listen-peer-urls=http://" + listen[i], "--initial-advertise-peer-urls=" + advertised,
			"--initial-cluster=" + strings.Join(initial, ","), "--initial-cluster-token=" + filepath.Base(c.dir),
			"--listen-metrics-urls=",
		}, o.Args...)
		if err := m.start(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		if err := m.await(); err != nil {
			return err
		}
		if n > 1 {
			s, err := m.status(context.Background())
			if err != nil {
				return err
			}
			m.id = s.id
		}
	}
	return nil
}

// status is what a member reports about itself.
type status struct{ id, leader string }

func (m *Member) status(ctx context.Context) (status, error) {
	var s struct {
		Header struct {
			MemberID uint64 `json:"member_id,string"`
		}
		Leader uint64 `json:",string"`
	}
	err := m.call(ctx, http.MethodPost, "/v3/maintenance/status", struct{}{}, &s)
	return status{fmt.Sprintf("%x", s.Header.MemberID), fmt.Sprintf("%x", s.Leader)}, err
}

func (m *Member) start() error {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(m.program, m.args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2", "ETCD_LOGGER=zap", "ETCD_LOG_LEVEL=warn")
	cmd.Stdout, cmd.Stderr = log, log
	m.proc, err = child.Start(cmd)
	return err
}

// await waits until the member is healthy.
func (m *Member) await() error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var health struct{ Health string }
		if m.scheme == "https" {
			if conn, err := net.Dial("tcp", m.Addr); err == nil {
				conn.Close()
				return nil
			}
		} else if m.call(context.Background(), http.MethodGet, "/health", nil, &health) == nil && health.Health == "true" {
			return nil
		}
		select {
		case <-m.proc.Done():
			return fmt.Errorf("%s ended at once (%v):\n%s", m.program, m.proc.Err(), m.Log())
		case <-poll.C:
		}
	}
	return fmt.Errorf("%s is not healthy after %v:\n%s", m.program, patience, m.Log())
}

// call makes a request to the HTTP gateway of the member.
func (m *Member) call(ctx context.Context, method, path string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+m.Addr+path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	return json.Unmarshal(text, into)
}

// Log returns what the member has logged.
func (m *Member) Log() []byte {
	b, _ := os.ReadFile(m.log)
	return b[max(0, len(b)-16<<10):]
}

// Kill ends the member at once, as a crash does. It keeps its data.
func (m *Member) Kill() { m.proc.Kill() }

// Restart starts a member that was killed, and waits until it is healthy.
func (m *Member) Restart() error {
	if err := m.start(); err != nil {
		return err
	}
	return m.await()
}

// Freeze stops the process of the member (SIGSTOP).
func (m *Member) Freeze() error { return m.proc.Freeze() }

// Thaw continues a frozen member.
func (m *Member) Thaw() error { return m.proc.Thaw() }

// ProxyAddr is the address of Proxy.
func (m *Member) ProxyAddr() string { return m.Proxy.Addr() }

// Leader returns the index of the member that the members which answer call their leader.
// It waits until there is one, other than the one with index not.
func (c *Cluster) Leader(ctx context.Context, not int) (int, error) {
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		ids := make(map[string]int)
		var leaders []string
		for i, m := range c.Members {
			if i == not {
				continue
			}
			short, cancel := context.WithTimeout(ctx, time.Second)
			var s status
			s, err = m.status(short)
			cancel()
			if err == nil {
				ids[s.id] = i
				leaders = append(leaders, s.leader)
			}
		}
		for _, leader := range leaders {
			if i, ok := ids[leader]; ok {
				return i, nil
			}
		}
	}
	return 0, fmt.Errorf("etcdtest: no leader after %v: %v", patience, cmp.Or(ctx.Err(), err))
}

// Cut cuts member i off from all other members, in both directions. Heal ends that.
func (c *Cluster) Cut(i int) {
	for j, m := range c.Members {
		m.peers.cut(func(from string) bool { return i == j || from == c.Members[i].id })
	}
}

// Heal reconnects all members.
func (c *Cluster) Heal() {
	for _, m := range c.Members {
		m.peers.cut(func(string) bool { return false })
	}
}

// Endpoints returns the addresses of all members, and ProxyEndpoints those of their
// proxies.
func (c *Cluster) Endpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.Addr)
	}
	return all
}

// ProxyEndpoints returns the addresses of the members' proxies.
func (c *Cluster) ProxyEndpoints() (all []string) {
	for _, m := range c.Members {
		all = append(all, m.ProxyAddr())
	}
	return all
}

func (c *Cluster) logged(text string) bool {
	for _, m := range c.Members {
		if m.log != "" && bytes.Contains(m.Log(), []byte(text)) {
			return true
		}
	}
	return false
}

func (c *Cluster) end() {
	for _, m := range c.Members {
		if m.proc != nil {
			m.proc.Kill()
		}
		if m.Proxy != nil {
			m.Proxy.Close()
		}
		if m.peers != nil {
			m.peers.close()
		}
	}
}

// Close ends the cluster and removes its files.
func (c *Cluster) Close() {
	c.end()
	os.RemoveAll(c.dir)
}
