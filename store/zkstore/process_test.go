package zkstore

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
	"github.com/leasehold-dev/leasehold/store"
)

// roamRole is set in the environment of a process of this binary that is to contend for a
// lock until it is killed: the server's address. It writes each stay to standard output.
const roamRole = "LEASEHOLD_ZKSTORE_TEST_ROAM"

// roamTTL is the TTL of leases of processes that are killed, after which others go on.
const roamTTL = time.Second

// roamStay is a stay as one process reports it to another.
type roamStay struct {
	Kind int
	Stay stay
}

var roamKinds = []store.Kind{store.ReadWrite, store.Semaphore(3)}

// roamUntilKilled contends in such a process.
func roamUntilKilled(server string) error {
	ctx := context.Background()
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	errs := make(chan error)
	s, err := openEngine(ctx, &Options{servers: []string{server}, Timeout: patience})
	if err != nil {
		return err
	}
	for i, kind := range roamKinds {
		for range 2 {
			go roam(ctx, s, "killed at any time "+kind.String(), kind, roamTTL, func(n stay) {
				mu.Lock()
				defer mu.Unlock()
				if err := out.Encode(roamStay{i, n}); err != nil {
					errs <- err
				}
			}, func(err error) { errs <- err })
		}
	}
	return <-errs
}

// Processes that hold and wait for a read-write lock and a semaphore are killed at any
// time. There are never too many holders, tokens are in order, and the others go on.
func TestKindsOfProcessesThatAreKilled(t *testing.T) {
	t.Parallel() // it mostly waits
	server, err := zktest.Launch(zktest.Options{Tick: 500 * time.Millisecond, Settings: []string{"maxSessionTimeout=40000"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var all []*history
	for _, kind := range roamKinds {
		all = append(all, &history{kind: kind})
	}
	var readers sync.WaitGroup
	start := func() *child.Process {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), roamRole+"="+server.Addr, "GORACE=atexit_sleep_ms=0")
		cmd.Stdout, cmd.Stderr = w, os.Stderr
		p, err := child.Start(cmd)
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		readers.Go(func() {
			defer r.Close()
			for lines := bufio.NewScanner(r); lines.Scan(); {
				var n roamStay
				if json.Unmarshal(lines.Bytes(), &n) == nil { // the last line may be cut short
					all[n.Kind].add(t, n.Stay)
				}
			}
		})
		return p
	}
	processes := []*child.Process{start(), start(), start()}
	for i := range 6 {
		for _, h := range all {
			n := h.count()
			eventually.True(t, fmt.Sprintf("there are stays in a %v after %d processes were killed", h.kind, i), func() bool { return h.count() > n+5 })
		}
		processes[i%len(processes)].Kill()
		processes[i%len(processes)] = start()
	}
	for _, p := range processes {
		p.Kill()
	}
	readers.Wait()
	s := mustOpen(t, &Options{servers: []string{server.Addr}})
	for _, h := range all { // killed processes leave nothing behind
		l := request("killed at any time "+h.kind.String(), roamTTL)
		l.Kind, l.Weight = h.kind, h.kind.Limit
		start := clock.System().Now()
		g, err := s.Wait(t.Context(), store.WaitRequest{Lease: l}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.add(t, stay{From: clock.System().Now(), To: start.Add(time.Hour), Weight: l.Weight, Slot: g.Slot, Token: g.Token})
	}
}
