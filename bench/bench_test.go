package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/contend"
	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/report"
	"github.com/leasehold-dev/leasehold/bench/servers"
)

// A run starts its cells and spinners from this test binary.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == cell.Arg || os.Args[1] == contend.Arg || os.Args[1] == servers.SpinArg) {
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

// All scenarios without contention run, from the start of the servers to the report.
func TestRun(t *testing.T) {
	s := settings{
		only: regexp.MustCompile("^(leasehold-5|messages-5|floor-5|leasehold-reader-1|leasehold-permit-1)$"), scenarios: all(aloneScenarios...), goroutines: []int{1, 4},
		rounds: 1, dur: 50 * time.Millisecond, warm: 20 * time.Millisecond, leases: 200, short: true, out: t.TempDir(),
	}
	r, err := measureAll(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range r.Cells {
		count[c.Scenario+" "+c.Kind]++
		if c.Operations == 0 || c.PerSecond == 0 || c.ServerCPU == 0 || c.Commands == 0 && c.Kind != "messages-5" {
			t.Errorf("%+v, want operations, their CPU time and commands", c)
		}
	}
	for what, want := range map[string]int{
		"healthy leasehold-5": 2, "healthy floor-5": 2, "healthy messages-5": 2, "dead messages-5": 0, "awake leasehold-5": 1, "awake floor-5": 1,
		"frozen leasehold-5": 2, "dead leasehold-5": 2, "three leasehold-5": 2, "frozen floor-5": 0, "dead floor-5": 0,
		"healthy leasehold-reader-1": 2, "healthy leasehold-permit-1": 2, "awake leasehold-permit-1": 1, "dead leasehold-permit-1": 0,
	} {
		if count[what] != want {
			t.Errorf("%s: %d measurements, want %d", what, count[what], want)
		}
	}
	if len(r.Held) != 1 || r.Held[0].Leases != 200 || r.Held[0].Lost != 0 {
		t.Errorf("held: %+v, want one figure of 200 leases, none lost", r.Held)
	}
	if r.Versions["redis-server"] == "" {
		t.Errorf("versions: %v, want that of redis-server", r.Versions)
	}
	if err := s.keep(r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.out + "/figures.txt")
	if err != nil || !strings.Contains(string(text), "Two of five servers dead; 4 goroutines") {
		t.Errorf("%v: %s\nwant the scenario of two dead servers", err, text)
	}
	if _, err := report.Read(s.out + "/raw.json"); err != nil {
		t.Error(err)
	}
}

// All scenarios of contended locks run.
func TestContention(t *testing.T) {
	s := settings{
		only: regexp.MustCompile("^(leasehold-1|leasehold-permit-1|redislock)$"), scenarios: all(contentionScenarios...), goroutines: []int{1}, processes: []int{2},
		rounds: 2, dur: 150 * time.Millisecond, warm: 50 * time.Millisecond, short: true, out: t.TempDir(),
	}
	r, err := measureAll(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, c := range r.Contests {
		count[fmt.Sprintf("%s %s %dx%d", c.Scenario, c.Kind, c.Processes, c.Goroutines)]++
		if c.Overlaps > 0 || c.Errors > 0 || (c.Turns == 0 || c.Sent == 0) && c.Scenario != report.Waiting {
			t.Errorf("%+v, want turns and commands, and no overlaps or errors", c)
		}
	}
	for _, f := range r.Firsts {
		count[f.Fate]++
	}
	for what, want := range map[string]int{
		"contended leasehold-1 2x1": 2, "contended redislock 2x1": 2, "inside leasehold-1 1x4": 2, "inside leasehold-1 2x4": 2,
		"waiting leasehold-1 1x4": 1, "waiting leasehold-1 4x1": 1, "far leasehold-1 4x1": 2, "shared leasehold-1 2x8": 2, "shared leasehold-permit-1 2x8": 2, contend.Alive: 2, contend.Killed: 2, contend.Hasty: 2, contend.Frozen: 2,
	} {
		if count[what] != want {
			t.Errorf("%s: %d measurements, want %d", what, count[what], want)
		}
		delete(count, what)
	}
	if len(count) > 0 {
		t.Errorf("also measured: %v, want nothing else", count)
	}
	if r.RoundTrip < farAway {
		t.Errorf("the round trip is %v, want %v at least", r.RoundTrip, farAway)
	}
	if err := s.keep(r); err != nil {
		t.Fatal(err)
	}
	if _, err := report.Read(s.out + "/contention.json"); err != nil {
		t.Error(err)
	}
	if _, err := report.Read(s.out + "/raw.json"); err == nil {
		t.Error("raw.json was written, want none: nothing of it was measured")
	}
	if v := r.Versions; v["bsm/redislock"] == "" || v["redis-server"] == "" {
		t.Errorf("versions: %v, want those of bsm/redislock and redis-server", v)
	}
}

// A default run measures every figure for which there is an aim.
func TestContests(t *testing.T) {
	s := settings{scenarios: all(allScenarios...), processes: []int{2, 16, 128}, rounds: 5, dur: time.Second}
	measured := map[string]bool{}
	for _, c := range s.contests(locks.Contended) {
		for _, n := range c.processes {
			for _, k := range c.kinds {
				measured[fmt.Sprintf("%s %s %dx%d", c.scenario, k.Name, n, c.inside)] = true
			}
		}
	}
	for _, want := range []string{
		"contended zookeeper 128x1", "contended leasehold-5 2x1", "contended redsync-goredis-5 16x1", "inside leasehold-1 1x16", "inside leasehold-1 2x16",
		"waiting rueidislock-1 1x100", "waiting leasehold-5 100x1", "far etcd 16x1", "shared leasehold-1 16x1", "shared leasehold-permit-1 16x1",
	} {
		if !measured[want] {
			t.Errorf("%s is not measured, want it measured", want)
		}
	}
	if measured["waiting floor-line-1 1x100"] || !measured["contended floor-line-5 128x1"] {
		t.Error("the queue by hand is measured waiting, or not contended; want it contended only")
	}
	if measured["inside etcd 1x16"] {
		t.Error("etcd is measured within a process, want only Leasehold and the library that it is compared with")
	}
}

// Each round measures all kinds, and the order of two that are compared alternates.
func TestOrderOfContests(t *testing.T) {
	c := contest{kinds: []locks.Kind{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	for round, want := range []string{"abc", "cba", "abc"} {
		got := ""
		for _, k := range c.order(round) {
			got += k.Name
		}
		if got != want {
			t.Errorf("round %d measures %q, want %q", round, got, want)
		}
	}
}

func TestNothingToMeasure(t *testing.T) {
	if _, err := measureAll(t.Context(), settings{only: regexp.MustCompile("^nothing$"), scenarios: all(allScenarios...)}); err == nil {
		t.Error("a run of no implementation: no error, want one")
	}
}

func TestNumbers(t *testing.T) {
	if got, err := numbers("1,16"); err != nil || len(got) != 2 || got[1] != 16 {
		t.Errorf("1,16: %v, %v, want [1 16]", got, err)
	}
	for _, bad := range []string{"", "0", "1,", "x", "-1"} {
		if got, err := numbers(bad); err == nil {
			t.Errorf("%q: %v, want an error", bad, got)
		}
	}
}

func TestKindsAreDistinct(t *testing.T) {
	for _, kinds := range [][]locks.Kind{locks.All, locks.Contended} {
		names, labels := map[string]bool{}, map[string]bool{}
		for _, k := range kinds {
			if names[k.Name] || labels[k.Label] || k.Nodes < 1 || (k.Open == nil) == (k.Benchmark == "") {
				t.Errorf("%+v, want a unique name and label, nodes, and Open or Benchmark", k)
			}
			names[k.Name], labels[k.Label] = true, true
		}
	}
	for _, k := range locks.All {
		if k.Role == locks.Peer && k.Module == "" {
			t.Errorf("%+v, want the module of a peer", k)
		}
		if c, ok := locks.ContendedNamed(k.Name); ok && c.Label != k.Label {
			t.Errorf("%s has the label %q with contention, want %q as without", k.Name, c.Label, k.Label)
		}
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
