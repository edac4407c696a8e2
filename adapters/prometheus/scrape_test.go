package prometheus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/prometheus"
	"github.com/leasehold-dev/leasehold/internal/testenv/adaptertest"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

// roleVar makes the test binary contend for a lock of the Redis server that it names.
const roleVar = "LEASEHOLD_PROMETHEUS_CONTENDS_ON"

// contend contends for a lock with four goroutines until its standard input ends, and
// serves the metrics. It prints the address at which it does.
func contend() {
	st, err := redisstore.Open(context.Background(), os.Getenv(roleVar), nil)
	if err != nil {
		panic(err)
	}
	c := prometheus.New(&prometheus.Options{Stats: func() redisstore.Stats { return redisstore.StatsOf(st) }})
	registry := prom.NewRegistry()
	registry.MustRegister(c)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(l, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	ctx, cancel := context.WithCancel(context.Background())
	client := leasehold.New(st, &leasehold.Options{Observer: c.Observe})
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				client.Mutex("contended").Do(ctx, func(ctx context.Context, _ *leasehold.Lease) error {
					time.Sleep(5 * time.Millisecond) // the work
					return nil
				})
			}
		}()
	}
	fmt.Println(l.Addr())
	io.Copy(io.Discard, os.Stdin)
	cancel()
	for range 4 {
		<-done
	}
	st.Close()
}

// contender starts a process that contends, and returns the address of its metrics.
func contender(t *testing.T, redis string) (addr string) {
	t.Helper()
	line, err := adaptertest.Again(t, roleVar+"="+redis).Out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// startPrometheus starts a Prometheus that scrapes the targets, and returns its URL.
func startPrometheus(t *testing.T, targets ...string) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatalf("%v: install Prometheus, or run \"make test\", which does where it can", err)
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global:\n  scrape_interval: 500ms\n  scrape_timeout: 500ms\nscrape_configs:\n  - job_name: contenders\n    static_configs:\n      - targets: [%s]\n", strings.Join(targets, ", "))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for try := 0; ; try++ {
		n, err := port.Pick()
		if err != nil {
			t.Fatal(err)
		}
		defer port.Release(n)
		addr := fmt.Sprintf("127.0.0.1:%d", n)
		var log strings.Builder
		cmd := exec.Command(binary, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, fmt.Sprint("data", try)), "--web.listen-address="+addr, "--log.level=warn")
		cmd.Stderr = &log
		p, err := child.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if up(p, "http://"+addr) {
			t.Cleanup(func() { p.Kill() })
			return "http://" + addr
		}
		p.Kill()
		if try == 5 {
			t.Fatalf("Prometheus does not start: %s", &log)
		}
	}
}

// up waits until the Prometheus at addr is ready, and reports whether it is.
func up(p *child.Process, addr string) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if resp, err := http.Get(addr + "/-/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-p.Done():
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
	return false
}

// patience bounds waits for what takes a second or two on a machine that is not busy.
const patience = 60 * time.Second

// dashboardPanel is a panel of the dashboard.
type dashboardPanel struct {
	Title   string
	GridPos struct{ X, Y, W, H int }
	Targets []struct{ RefID, Expr, LegendFormat string }
}

func dashboardPanels(t *testing.T) []dashboardPanel {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Panels []dashboardPanel }
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d.Panels
}

// dashboardQueries returns the queries of the dashboard, as Grafana sends them.
func dashboardQueries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range dashboardPanels(t) {
		for _, target := range p.Targets {
			all[p.Title+" "+target.RefID] = strings.NewReplacer("$__rate_interval", "20s", "$job", ".+").Replace(target.Expr)
		}
	}
	return all
}

// query returns the values of an instant query.
func query(t *testing.T, server, expr string) (values []string) {
	t.Helper()
	resp, err := http.Get(server + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s: %s %v", expr, answer.Error, err)
	}
	for _, r := range answer.Data.Result {
		values = append(values, fmt.Sprint(r.Value[1]))
	}
	return values
}

// Two processes contend for a lock, a Prometheus scrapes both, and each query of the
// dashboard has data.
func TestDashboardShowsContention(t *testing.T) {
	t.Parallel() // it mostly waits
	defer http.DefaultClient.CloseIdleConnections()
	redis := "redis://" + redistest.Start(t).Addr()
	server := startPrometheus(t, contender(t, redis), contender(t, redis))

	queries := dashboardQueries(t)
	if len(queries) < 15 {
		t.Fatalf("the dashboard has %d queries, want 15 at least", len(queries))
	}
	queries["both processes"] = `count(leasehold_leases) == 2`
	queries["hand-offs"] = `sum(leasehold_grants_total{way="handoff"}) > 0`
	queries["waits"] = `sum(leasehold_wait_duration_seconds_count) > 0`
	queries["nodes"] = `sum(leasehold_node_state{state="up"}) == 2`
	deadline := time.Now().Add(patience)
	for len(queries) > 0 {
		for name, expr := range queries {
			values := query(t, server, expr)
			switch {
			case len(values) > 0 && values[0] != "NaN":
				delete(queries, name)
			case time.Now().After(deadline):
				t.Fatalf("%s: the query %s has no data: %v", name, expr, values)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// The alert rules are valid, and fire when they should.
func TestAlertRules(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		out, err := exec.Command("promtool", args...).CombinedOutput()
		if err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}
