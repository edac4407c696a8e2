package report

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/cell"
	"github.com/leasehold-dev/leasehold/bench/locks"
)

// figuresOf returns a measurement of one second with that many operations.
func figuresOf(goroutines int, operations uint64) cell.Figures {
	q := cell.Quantiles{P50: time.Second / time.Duration(operations+1), P99: 3 * time.Millisecond}
	return cell.Figures{
		Goroutines: goroutines, Elapsed: time.Second, Operations: operations, PerSecond: float64(operations), Lock: q, Unlock: q,
		ClientCPU: 300 * time.Millisecond, ServerCPU: 500 * time.Millisecond, Commands: 10 * operations, Allocs: 11 * operations,
	}
}

// sample returns a run in which Leasehold is twice as fast as everything else.
func sample() *Run {
	r := &Run{Machine: ThisMachine(), Versions: map[string]string{"redis-server": "7.0.15"}, Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Rounds: 3, For: time.Second}
	for round := range 3 {
		for _, k := range locks.All {
			for _, n := range []int{1, 16, 256} {
				operations := uint64(1000 + 10*round)
				if k.Role == locks.Ours {
					operations *= 2
				}
				r.Cells = append(r.Cells, Cell{Healthy, k.Name, round, figuresOf(n, operations)})
			}
		}
		r.Cells = append(r.Cells, Cell{Dead, "leasehold-5", round, figuresOf(16, 900)}, Cell{Three, "leasehold-5", round, figuresOf(16, 1000)},
			Cell{Frozen, "redsync-goredis-5", round, cell.Figures{Goroutines: 1, Elapsed: time.Second, Errors: 1, FirstError: "none"}})
	}
	r.Held = []Held{{"leasehold-5", cell.HeldFigures{Leases: 1000, TTL: 30 * time.Second, Heap: 512_000, Window: 10 * time.Second, ClientCPU: time.Second}}}
	return r
}

func TestRatios(t *testing.T) {
	m := mediansOf(sample())
	of := map[string]float64{}
	for _, r := range ratios {
		if x, ok := r.of(m, Healthy, 16); ok {
			of[r.what] = x
		}
	}
	for what, want := range map[string]float64{
		"5 nodes: operations per second, Leasehold / best redsync":                      2,
		"1 node: operations per second, Leasehold / best peer":                          2,
		"5 nodes: client CPU per operation, best redsync / Leasehold":                   2,
		"5 nodes: server CPU per operation, best redsync / Leasehold":                   2,
		"1 node: operations per second, Leasehold / Leasehold through rueidis":          1,
		"1 node: client CPU per operation, Leasehold through rueidis / Leasehold":       1,
		"5 nodes: allocations per operation, Leasehold":                                 11,
		"1 node: p50 of lock, Leasehold / best peer":                                    0.5,
		"two of 5 nodes dead: operations per second / those with the other three alone": 0.9,
		"5 nodes: operations per second, Leasehold / by hand with a counter":            2,
		"1 node: operations per second, by hand with a counter, in lists / best peer":   1,
	} {
		if got, ok := of[what]; !ok || got < want*0.99 || got > want*1.01 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	if len(of) != len(ratios) {
		t.Errorf("%d ratios, want %d", len(of), len(ratios))
	}
	// Ratios without a peer are left out.
	none := mediansOf(&Run{Cells: []Cell{{Healthy, "leasehold-5", 0, figuresOf(1, 10)}}})
	if table := ratioTable(none, Healthy, true); len(table) != 2 || !strings.Contains(table[1][0], "allocations") {
		t.Errorf("%q, want only the header and allocations", table)
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		r    ratio
		x    float64
		want string
	}{
		{ratio{aim: by(2, 3, 4)}, 3, " (3)"}, {ratio{aim: by(2, 3, 4)}, 2.9, " (missed: 3)"}, {ratio{}, 1, ""},
		{ratio{aim: by(2, 3, 4), most: true}, 3, " (at most 3)"}, {ratio{aim: by(2, 3, 4), most: true}, 3.1, " (missed: at most 3)"},
	} {
		if got := c.r.verdict(c.x, 16); got != c.want {
			t.Errorf("%v: %q, want %q", c.x, got, c.want)
		}
	}
}

func TestMediansWithoutOperations(t *testing.T) {
	row := mediansOf(sample()).rows[key{Frozen, "redsync-goredis-5", 1}]
	if row.PerSecond != 0 || row.LockP50 != 0 || row.Errors != 3 {
		t.Errorf("%+v, want zeros and 3 errors", row)
	}
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw.json")
	r := sample()
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, r) {
		t.Error("what was read is not what was written, want the same")
	}
	if _, err := Read(path + "x"); err == nil {
		t.Error("a missing file: no error, want one")
	}
}

func TestDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before\n" + begin + "\nOUTDATED\n" + end + "\nafter\n")
	for range 2 { // the second time replaces the first
		if err := Document(path, sample()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s := string(text)
	if !strings.HasPrefix(s, "before\n"+begin) || !strings.HasSuffix(s, end+"\nafter\n") || strings.Contains(s, "OUTDATED") || strings.Count(s, begin) != 1 {
		t.Errorf("%s\nwant the figures once, in place of the outdated ones", s)
	}
	for _, part := range []string{"redis-server 7.0.15", "2 January 2026", "| Leasehold, 5 nodes |", "512 bytes of heap each", "10.0 % of one core", "| 2.00 |", "One of five servers frozen"} {
		if !strings.Contains(s, part) {
			t.Errorf("%s\nwant text with %q", s, part)
		}
	}
	if strings.Contains(s, "missed") || strings.Contains(s, "aim") {
		t.Errorf("%s\nwant none of our aims, no %q and no %q", s, "missed", "aim")
	}
	write("no place")
	if err := Document(path, sample()); err == nil {
		t.Error("a document without a place for figures: no error, want one")
	}
}

func TestSharedMachineIsMentioned(t *testing.T) {
	for load, want := range map[string]bool{"0.07 3.00 4.00": false, "": false, "0.90 0.10 0.00": true, "12.34 1 1": true} {
		if text := figures(&Run{LoadOff: load}); strings.Contains(text, "Other programs used the machine") != want {
			t.Errorf("load %q: %s\nwant other programs mentioned: %v", load, text, want)
		}
	}
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	if err := Print(&b, sample()); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"LOCK+UNLOCK/S", "2,020", "ratio", "(missed: 3)", "1,000 leases"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%s\nwant text with %q", b.String(), part)
		}
	}
}
