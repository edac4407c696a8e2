package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/goleak"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/adapters/prometheus"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/virtual"
	"github.com/leasehold-dev/leasehold/store/memstore"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		contend()
		return
	}
	goleak.VerifyTestMain(m)
}

// Two clients contend for a lock. Its waits, hand-offs and holds are counted.
func TestMetricsOfContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := virtual.Clock()
		st := memstore.New(&memstore.Options{Clock: now})
		defer st.Close()
		c := prometheus.New(&prometheus.Options{Class: func(name string) string { return strings.TrimRight(name, "0123456789") }})
		ours := leasehold.New(st, &leasehold.Options{Clock: now, Observer: c.Observe})
		theirs := leasehold.New(st, &leasehold.Options{Clock: now, Observer: c.Observe})

		first, err := ours.Mutex("job7").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases := make(chan *leasehold.Lease, 3)
		for _, client := range []*leasehold.Client{ours, ours, theirs} {
			go func() {
				l, err := client.Mutex("job7").Acquire(t.Context())
				if err != nil {
					t.Error(err)
				}
				leases <- l
			}()
			synctest.Wait()
		}
		_, err = theirs.Mutex("job7").Try(t.Context())
		if !errors.Is(err, leasehold.ErrBusy) {
			t.Fatalf("a try while the lock is held: %v, want %v", err, leasehold.ErrBusy)
		}
		wants(t, c, "leasehold_waiters", `
			# HELP leasehold_waiters Calls that wait for a lock now.
			# TYPE leasehold_waiters gauge
			leasehold_waiters{class="job"} 3
		`)
		for l := first; l != nil; {
			time.Sleep(2 * time.Second)
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			select {
			case l = <-leases:
			default:
				l = nil
			}
		}
		wants(t, c, "leasehold_waiters", `
			# HELP leasehold_waiters Calls that wait for a lock now.
			# TYPE leasehold_waiters gauge
			leasehold_waiters{class="job"} 0
		`)
		wants(t, c, "leasehold_leases", `
			# HELP leasehold_leases Leases held now.
			# TYPE leasehold_leases gauge
			leasehold_leases{class="job"} 0
		`)
		wants(t, c, "leasehold_grants_total", `
			# HELP leasehold_grants_total Leases obtained, by the way in which they were.
			# TYPE leasehold_grants_total counter
			leasehold_grants_total{class="job",way="handoff"} 3
			leasehold_grants_total{class="job",way="store"} 1
		`)
		sums := sumsOf(t, c)
		for name, want := range map[string]float64{
			"leasehold_hold_duration_seconds released":   8,         // four holds of two seconds each
			"leasehold_wait_duration_seconds":            2 + 4 + 6, // one after the other
			"leasehold_acquire_duration_seconds granted": 0 + 2 + 4 + 6,
		} {
			if got := sums[name]; got < want-.001 || got > want+.001 {
				t.Errorf("the sum of %s is %v, want %v", name, got, want)
			}
		}
		if n := testutil.CollectAndCount(c, "leasehold_acquire_failures_total"); n != 10 {
			t.Errorf("%d reasons for failures, want 10", n)
		}
	})
}

// sumsOf returns the sum of each histogram, by its name and its own label.
func sumsOf(t *testing.T, c prom.Collector) map[string]float64 {
	t.Helper()
	r := prom.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			key := f.GetName()
			for _, l := range m.Label {
				if l.GetName() != "class" {
					key += " " + l.GetValue()
				}
			}
			if h := m.GetHistogram(); h != nil {
				sums[key] = h.GetSampleSum()
			}
		}
	}
	return sums
}

func wants(t *testing.T, c prom.Collector, name, text string) {
	t.Helper()
	if err := testutil.CollectAndCompare(c, strings.NewReader(text), name); err != nil {
		t.Error(err)
	}
}

// Names of locks may have any bytes, and so may their classes.
func TestClassOfAStrangeName(t *testing.T) {
	st := memstore.New(nil)
	defer st.Close()
	c := prometheus.New(&prometheus.Options{Class: func(name string) string { return name[:2] }})
	l, err := leasehold.New(st, &leasehold.Options{Observer: c.Observe}).Mutex("a\xff7").Try(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	wants(t, c, "leasehold_leases", `
		# HELP leasehold_leases Leases held now.
		# TYPE leasehold_leases gauge
		leasehold_leases{class="a`+"\uFFFD"+`"} 0
	`)
}

// A lease whose node is down counts failed renewals, and then one loss.
func TestMetricsOfALoss(t *testing.T) {
	t.Parallel() // it mostly waits
	server := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), "redis://"+server.Addr(), &redisstore.Options{NodeTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c := prometheus.New(&prometheus.Options{Stats: func() redisstore.Stats { return redisstore.StatsOf(st) }})
	client := leasehold.New(st, &leasehold.Options{Observer: c.Observe})
	l, err := client.Mutex("a").With(leasehold.LockOptions{TTL: 6 * time.Second}).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state := func(up, down string) string {
		node := `node="` + server.Addr() + `"`
		return `
			# HELP leasehold_node_state Whether a node is in that state, as this client knows it.
			# TYPE leasehold_node_state gauge
			leasehold_node_state{` + node + `,state="down"} ` + down + `
			leasehold_node_state{` + node + `,state="quarantined"} 0
			leasehold_node_state{` + node + `,state="up"} ` + up + `
		`
	}
	wants(t, c, "leasehold_node_state", state("1", "0"))
	server.Kill()
	<-l.Done()
	if err := l.Release(t.Context()); !errors.Is(err, leasehold.ErrLost) {
		t.Errorf("the release of the lost lease: %v, want %v", err, leasehold.ErrLost)
	}
	wants(t, c, "leasehold_node_state", state("0", "1"))
	wants(t, c, "leasehold_losses_total", `
		# HELP leasehold_losses_total Leases lost before they were released, by cause.
		# TYPE leasehold_losses_total counter
		leasehold_losses_total{cause="denied"} 0
		leasehold_losses_total{cause="expired"} 1
		leasehold_losses_total{cause="max_hold"} 0
	`)
	r := prom.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "leasehold_renewal_failures_total" && f.Metric[0].GetCounter().GetValue() < 1 {
			t.Error("no failed renewal was counted, want one at least")
		}
	}
}

// Names and help texts follow Prometheus' conventions, all metrics can be gathered, and the
// documentation of the package lists them.
func TestNamesFollowTheConventions(t *testing.T) {
	node := redisstore.NodeStats{Node: "a:6379", Err: errors.New("refused")}
	c := prometheus.New(&prometheus.Options{Stats: func() redisstore.Stats { return redisstore.Stats{Nodes: []redisstore.NodeStats{node}} }})
	r := prom.NewPedanticRegistry()
	r.MustRegister(c)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("prometheus.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed, gathered []string
	for _, m := range regexp.MustCompile(`(?m)^//\t(leasehold_\w+)`).FindAllSubmatch(doc, -1) {
		listed = append(listed, string(m[1]))
	}
	for _, f := range families {
		gathered = append(gathered, f.GetName())
	}
	slices.Sort(listed)
	slices.Sort(gathered)
	if len(gathered) != 11 || !slices.Equal(listed, gathered) {
		t.Errorf("the metrics %q, want 11, and the documentation lists %q", gathered, listed)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func Example() {
	st := memstore.New(nil)
	defer st.Close()

	c := prometheus.New(nil)
	registry := prom.NewRegistry()
	registry.MustRegister(c)
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	client := leasehold.New(st, &leasehold.Options{Observer: c.Observe})
	client.Mutex("report").Do(context.Background(), func(ctx context.Context, l *leasehold.Lease) error {
		return nil
	})
	text, err := testutil.CollectAndFormat(c, expfmt.TypeTextPlain, "leasehold_grants_total")
	if err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s", text)
	// Output:
	// # HELP leasehold_grants_total Leases obtained, by the way in which they were.
	// # TYPE leasehold_grants_total counter
	// leasehold_grants_total{way="handoff"} 0
	// leasehold_grants_total{way="store"} 1
}
