package chaos

import (
	"context"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/torture"
)

const nodes = 5

// settings of the stores under test: a node that does not answer is given up
// early, and is connected to again soon.
func settings(ttl time.Duration) url.Values {
	return url.Values{"node_timeout": {(ttl / 15).String()}, "connect_timeout": {(ttl / 2).String()}}
}

// workers returns what starts worker processes of this test program, with that kind of store.
func workers(t *testing.T, kind string) func() *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func() *exec.Cmd {
		c := exec.Command(exe)
		c.Env = append(os.Environ(), asWorker+"="+kind)
		return c
	}
}

// run runs c, and returns the report and what is printed of it. The history is
// kept if the test fails.
func run(t *testing.T, c torture.Config) (*torture.Report, string) {
	t.Helper()
	if c.Dir == "" {
		dir, err := os.MkdirTemp("", "leasehold-chaos-")
		if err != nil {
			t.Fatal(err)
		}
		c.Dir = filepath.Join(dir, "history")
		t.Cleanup(func() {
			if !t.Failed() {
				os.RemoveAll(dir)
			}
		})
	}
	began := time.Now()
	c.Progress = func(p torture.Progress) {
		if testing.Verbose() && time.Since(began) > 5*time.Second {
			began = time.Now()
			t.Logf("%s: %v: %d grants, %d lost, %d unknown; stopped %d, killed %d", p.Phase, p.Elapsed.Round(time.Second), p.Granted, p.Lost, p.Unknown, p.Stops, p.Kills)
		}
	}
	report, err := torture.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	var printed strings.Builder
	report.Print(&printed)
	return report, printed.String()
}

// The store and the client keep their promises over five servers, with all faults that
// servers can have that keep their data.
func TestTorture(t *testing.T) {
	tortured(t, nodes, torture.Config{Locks: torture.Names(3)})
}

// TestTortureKinds is TestTorture with locks of all kinds.
func TestTortureKinds(t *testing.T) {
	kinds := torture.Kinds(4)
	tortured(t, nodes, torture.Config{Locks: torture.Names(len(kinds)), Kinds: kinds})
}

// TestTortureCrowd is TestTorture beside a crowd of waiters and readers, and an operator.
func TestTortureCrowd(t *testing.T) {
	tortured(t, nodes, torture.Config{Locks: torture.Names(3), Crowd: *crowd})
}

// tortured runs c on that many servers.
func tortured(t *testing.T, nodes int, config torture.Config) {
	verdict = "FAIL: it came to no verdict"
	c := Start(t, nodes, Durable...)
	ttl := *ttl
	if *seed == 0 {
		*seed = rand.Uint64N(1e9) + 1
	}
	config.Procs, config.TTL, config.For, config.Seed, config.Dir = *procs, ttl, *faultsFor, *seed, *out
	config.Nodes, config.Idle = nodes, *idle
	config.Store, config.Command = []string{c.URL(settings(ttl))}, workers(t, "shipped")
	config.Disturb = func(ctx context.Context, note func(on, what string) func()) {
		if *blinks {
			c.Blink(ctx, note)
			return
		}
		c.Disturb(ctx, *seed, ttl, note)
	}
	report, printed := run(t, config)
	t.Log(printed)
	if !report.OK() {
		t.Error("the report has violations, want none: see above")
	}
	// Without faults and grants, a pass would show nothing.
	if report.Granted < len(report.Locks) || report.Stops+report.Kills == 0 || report.Faults == 0 {
		t.Errorf("%d grants, %d stops, %d kills, %d faults, want some of each", report.Granted, report.Stops, report.Kills, report.Faults)
	}
	verdict = report.Verdict()
	if t.Failed() {
		verdict = strings.Replace(verdict, "PASS", "FAIL", 1)
	}
}
