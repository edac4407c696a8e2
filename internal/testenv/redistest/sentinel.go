package redistest

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
)

// Watched is a master with replicas, and sentinels that promote one of them when the
// master fails.
type Watched struct {
	Master    *Server
	Replicas  []*Server
	Sentinels []*Server
}

// MasterName is the name of the master in the sentinels of StartWatched.
const MasterName = "mymaster"

// StartWatched starts a master with one replica and the given number of
// sentinels. It waits until all know each other, and ends them with the test. For
// the sentinels, half a second without an answer is a failure, and a majority of
// them has to agree on a failover. The lines, such as "requirepass x", are added
// to their configuration.
func StartWatched(t testing.TB, sentinels int, lines ...string) *Watched {
	t.Helper()
	return Watch(t, Start(t), sentinels, nil, lines...)
}

// Watch is StartWatched for an existing master. The replica gets the settings.
func Watch(t testing.TB, master *Server, sentinels int, settings []string, lines ...string) *Watched {
	t.Helper()
	host, port, _ := net.SplitHostPort(master.Addr())
	w := &Watched{Master: master}
	w.Replicas = []*Server{Start(t, append([]string{"--replicaof", host, port, "--repl-diskless-sync-delay", "0"}, settings...)...)}
	eventually.True(t, "the replica has the master's data", func() bool {
		return strings.Contains(w.Replicas[0].Text(t, "INFO", "replication"), "master_link_status:up")
	})
	conf := append([]string{
		fmt.Sprintf("sentinel monitor %s %s %s 1", MasterName, host, port),
		"sentinel down-after-milliseconds " + MasterName + " 500",
		"sentinel failover-timeout " + MasterName + " 3000",
	}, lines...)
	w.Sentinels = make([]*Server, sentinels)
	errs := make([]error, sentinels)
	var all sync.WaitGroup
	for i := range sentinels {
		o := Options{Dir: t.TempDir(), Sentinel: conf, Trouble: func(err error) { t.Error(err) }}
		all.Go(func() { w.Sentinels[i], errs[i] = Launch(o) })
	}
	all.Wait()
	for _, s := range w.Sentinels {
		if s == nil {
			continue
		}
		t.Cleanup(func() {
			s.Close()
			if t.Failed() {
				t.Logf("log of the sentinel at %s:\n%s", s.Addr(), s.Log())
			}
		})
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Sentinels {
		eventually.True(t, "the sentinel knows the replica and the other sentinels", func() bool {
			m := s.master(t)
			return m["num-slaves"] == "1" && m["num-other-sentinels"] == fmt.Sprint(sentinels-1) && m["flags"] == "master"
		})
	}
	return w
}

// master returns what a sentinel reports about the master.
func (s *Server) master(t testing.TB) map[string]string {
	t.Helper()
	words := strings.Split(s.Text(t, "SENTINEL", "MASTER", MasterName), "\n")
	m := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		m[words[i]] = words[i+1]
	}
	return m
}

// MasterAddr returns the address of the master according to sentinel s.
func (s *Server) MasterAddr(t testing.TB) string {
	t.Helper()
	host, port, _ := strings.Cut(s.Text(t, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName), "\n")
	return net.JoinHostPort(host, port)
}

// URL returns a URL with all sentinels.
func (w *Watched) URL() string {
	var addrs []string
	for _, s := range w.Sentinels {
		addrs = append(addrs, s.Addr())
	}
	return "redis-sentinel://" + strings.Join(addrs, ",") + "?master=" + MasterName
}

// Failover makes a sentinel promote the replica although the master works. It
// returns when all sentinels that are up know.
func (w *Watched) Failover(t testing.TB) {
	t.Helper()
	first := w.up(t)[0]
	eventually.True(t, "the sentinel finds that the replica will do", func() bool {
		_, err := first.Do(t.Context(), "SENTINEL", "FAILOVER", MasterName)
		return err == nil
	})
	w.Promoted(t)
}

// Promoted waits until all sentinels that are up report the replica as the
// master.
func (w *Watched) Promoted(t testing.TB) {
	t.Helper()
	for _, s := range w.up(t) {
		eventually.True(t, "the sentinels name the replica as the master", func() bool {
			return s.MasterAddr(t) == w.Replicas[0].Addr() && s.master(t)["flags"] == "master"
		})
	}
}

func (w *Watched) up(t testing.TB) (all []*Server) {
	t.Helper()
	for _, s := range w.Sentinels {
		if s.PID() != 0 {
			all = append(all, s)
		}
	}
	if all == nil {
		t.Fatal("no sentinel is up")
	}
	return all
}
