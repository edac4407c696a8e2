package cell

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

func addrs(servers []*redistest.Server) []string {
	var all []string
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

// talk runs a cell as a run does.
func talk(t *testing.T, s Spec) Outcome {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Main(inR, outW)
		outW.Close()
	}()
	if err := json.NewEncoder(inW).Encode(s); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(outR)
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(line) == Ready {
		io.WriteString(inW, "go\n")
		if line, err = r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	var o Outcome
	if err := json.Unmarshal([]byte(line), &o); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return o
}

// The commands counted for the Redis implementations are those that the servers
// executed.
func TestMeasure(t *testing.T) {
	servers, alone := redistest.StartN(t, 5), redistest.StartN(t, 1) // which is not one of the five
	for _, k := range locks.All {
		if k.Engine != locks.Redis || k.Open == nil {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			used := servers
			if k.Nodes == 1 {
				used = alone
			}
			a := addrs(used)
			o := talk(t, Spec{Do: Measure, Kind: k.Name, Addrs: a, Probe: a, Goroutines: []int{2, 1}, Warm: 20 * time.Millisecond, For: 100 * time.Millisecond})
			if o.Error != "" || len(o.Figures) != 2 {
				t.Fatalf("%+v, want two figures and no error", o)
			}
			for i, f := range o.Figures {
				if strings.HasSuffix(k.Name, "failfast") && f.Errors > 0 {
					continue // its releases sometimes overtake its locks, and it waits until what is left expires
				}
				if f.Goroutines != 2-i || f.Operations == 0 || f.Lock.P50 <= 0 || f.Unlock.P99 < f.Unlock.P50 || f.ClientCPU <= 0 || f.Allocs == 0 && k.Role != locks.Floor {
					t.Errorf("%+v, want operations by %d goroutines with positive times", f, 2-i)
				}
				// At least one command to acquire and one to release, on a majority of
				// the servers.
				if least := f.Operations * uint64(k.Nodes/2+1) * 2; f.Commands < least {
					t.Errorf("%d commands for %d operations, want %d at least", f.Commands, f.Operations, least)
				}
			}
		})
	}
}

// Every run checks at its start that all implementations exclude.
func TestCheck(t *testing.T) {
	servers := redistest.StartN(t, 5)
	for _, name := range []string{"leasehold-5", "floor-1"} {
		k, _ := locks.Named(name)
		if o := talk(t, Spec{Do: Check, Kind: name, Addrs: addrs(servers)[:k.Nodes]}); o.Error != "" {
			t.Errorf("%s: %s, want no error", name, o.Error)
		}
	}
}

func TestHeld(t *testing.T) {
	servers := redistest.StartN(t, 3)
	a := addrs(servers)
	o := talk(t, Spec{Do: Held, Kind: "leasehold-5", Addrs: a, Probe: a, Leases: 500, TTL: 3 * time.Second, For: 2 * time.Second})
	h := o.Held
	if o.Error != "" || h == nil || h.Leases != 500 || h.Lost != 0 || h.Heap < 500*100 || h.ClientCPU <= 0 || h.Window < 2*time.Second {
		t.Fatalf("%+v %+v, want 500 leases, none lost, with their heap and CPU", o, h)
	}
	// Each is renewed after a third of its TTL.
	if h.Commands < 500*3 {
		t.Errorf("%d commands renew %d leases on three servers, want 3 of each at least", h.Commands, h.Leases)
	}
	if keys := servers[0].Keys(t); len(keys) < 500 {
		t.Errorf("%d keys on a server, want 500 at least", len(keys))
	}
}

func TestTrouble(t *testing.T) {
	for _, s := range []Spec{
		{Do: Measure, Kind: "nothing"},
		{Do: Measure, Kind: "leasehold-1", Addrs: []string{"127.0.0.1:1"}},
		{Do: Measure, Kind: "floor-1", Addrs: []string{"127.0.0.1:1"}},
		{Do: Held, Kind: "leasehold-1", Addrs: []string{"127.0.0.1:1"}},
	} {
		if o := talk(t, s); o.Error == "" {
			t.Errorf("%+v: no error, want one", s)
		}
	}
}

// granting is a lock that is always granted.
type granting struct{}

func (granting) Pair(string) load.Pair        { return granting{} }
func (granting) Close()                       {}
func (granting) Lock(context.Context) error   { return nil }
func (granting) Unlock(context.Context) error { return nil }

// waiting is a correct lock that waits even after its context has ended.
type waiting struct{ mu *sync.Mutex }

func (w waiting) Pair(string) load.Pair        { return w }
func (waiting) Close()                         {}
func (w waiting) Lock(context.Context) error   { w.mu.Lock(); return nil }
func (w waiting) Unlock(context.Context) error { w.mu.Unlock(); return nil }

func TestExclusionIsSeen(t *testing.T) {
	if err := exclusion(t.Context(), "a", 0, granting{}, granting{}); err == nil {
		t.Error("a lock that is always granted: no error, want one")
	}
	w := waiting{new(sync.Mutex)}
	if err := exclusion(t.Context(), "a", 0, w, w); err != nil {
		t.Errorf("a mutex: %v, want no error", err)
	}
}

func TestProbe(t *testing.T) {
	s := redistest.Start(t)
	spec := Spec{Probe: []string{s.Addr()}}
	before, err := spec.probe()
	if err != nil {
		t.Fatal(err)
	}
	for range 7 {
		s.Text(t, "PING")
	}
	after, err := spec.probe()
	if err != nil {
		t.Fatal(err)
	}
	if used := after.since(before); used.commands != 7 || used.cpu <= 0 {
		t.Errorf("%+v, want 7 commands", used)
	}
	var u serverUse
	if err := u.add("used_cpu_user:1.5\r\n"); err == nil {
		t.Error("an INFO without all figures: no error, want one")
	}
}
