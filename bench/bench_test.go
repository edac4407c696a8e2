package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/report"
	"github.com/leasehold-dev/leasehold/bench/servers"
)

// The cells and spinners of a run are this program again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == cell.Arg || os.Args[1] == servers.SpinArg) {
		main()
		return
	}
	os.Exit(m.Run())
}

func all(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[n] = true
	}
	return set
}

// Every scenario, from the servers' start to the report.
func TestRun(t *testing.T) {
	s := settings{
		only: regexp.MustCompile("^(leasehold-5|floor-5)$"), scenarios: all(allScenarios...), goroutines: []int{1, 4},
		rounds: 1, dur: 50 * time.Millisecond, warm: 20 * time.Millisecond, leases: 200, short: true, out: t.TempDir(),
	}
	r, err := measureAll(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range r.Cells {
		count[c.Scenario+" "+c.Kind]++
		if c.Operations == 0 || c.Commands == 0 {
			t.Errorf("%+v", c)
		}
	}
	for what, want := range map[string]int{
		"healthy leasehold-5": 2, "healthy floor-5": 2, "awake leasehold-5": 1, "awake floor-5": 1,
		"frozen leasehold-5": 2, "dead leasehold-5": 2, "three leasehold-5": 2, "frozen floor-5": 0, "dead floor-5": 0,
	} {
		if count[what] != want {
			t.Errorf("%s: %d measurements, want %d", what, count[what], want)
		}
	}
	if len(r.Held) != 1 || r.Held[0].Leases != 200 || r.Held[0].Lost != 0 {
		t.Errorf("held: %+v", r.Held)
	}
	if r.Versions["redis-server"] == "" {
		t.Errorf("versions: %v", r.Versions)
	}
	if err := s.keep(r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.out + "/figures.txt")
	if err != nil || !strings.Contains(string(text), "Two of five servers dead; 4 goroutines") {
		t.Errorf("%v: %s", err, text)
	}
	if _, err := report.Read(s.out + "/raw.json"); err != nil {
		t.Error(err)
	}
}

func TestNothingToMeasure(t *testing.T) {
	if _, err := measureAll(t.Context(), settings{only: regexp.MustCompile("^nothing$")}); err == nil {
		t.Error("no error")
	}
}

func TestNumbers(t *testing.T) {
	if got, err := numbers("1,16"); err != nil || len(got) != 2 || got[1] != 16 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "1,", "x", "-1"} {
		if got, err := numbers(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestKindsAreTold(t *testing.T) {
	names, labels := map[string]bool{}, map[string]bool{}
	for _, k := range locks.All {
		if names[k.Name] || labels[k.Label] || k.Nodes < 1 || k.Open == nil || k.Role == locks.Peer && k.Module == "" {
			t.Errorf("%+v", k)
		}
		names[k.Name], labels[k.Label] = true, true
	}
}

func TestModuleName(t *testing.T) {
	for path, want := range map[string]string{
		"github.com/go-redsync/redsync/v4": "go-redsync/redsync", "github.com/bsm/redislock": "bsm/redislock", "go.etcd.io/etcd/client/v3": "etcd/client",
	} {
		if got := moduleName(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
