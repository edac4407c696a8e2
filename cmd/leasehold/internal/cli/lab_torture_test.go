//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// shortTorture is a run that takes little time.
var shortTorture = []string{"lab", "torture", "--for", "1s", "--ttl", "300ms", "--procs", "2"}

func lastLineOf(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

func workersLeft() []string { return processesLeft("torture-worker") }

// processesLeft are the processes of "lab" that run, as far as the system says.
func processesLeft(command string) (left []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path)
		if strings.HasPrefix(string(line), binary+"\x00lab\x00"+command) {
			left = append(left, path)
		}
	}
	return left
}

func TestTorture(t *testing.T) {
	s := newSite(t)
	out := filepath.Join(t.TempDir(), "a", "history")
	p := s.run(0, append(shortTorture, "--out", out, "--seed", "7")...)
	if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "PASS: 0 violations") || !strings.Contains(p.out.String(), "seed     7\n") {
		t.Errorf("stdout: %s, want %q at the beginning of the last line and text with %q", p.out.String(), "PASS: 0 violations", "seed     7\n")
	}
	if !strings.Contains(p.err.String(), "leasehold: checking the history; ") {
		t.Errorf("the progress: %s, want text with %q", p.err.String(), "leasehold: checking the history; ")
	}
	if svg, err := os.ReadFile(filepath.Join(out, "history.svg")); err != nil || !strings.Contains(string(svg), "worker 2/0") {
		t.Errorf("the plot: %v, want one with a lane of worker 2/0", err)
	}
	if p := s.run(0, "ls", "leasehold-torture/", "--json"); strings.TrimSpace(p.out.String()) != "[]" {
		t.Errorf("locks %s are left, want none", p.out.String())
	}
	if left := workersLeft(); len(left) > 0 {
		t.Errorf("processes %q are left, want none", left)
	}

	p = s.run(125, append(shortTorture, "--out", out)...)
	if !strings.Contains(p.err.String(), "not empty") {
		t.Errorf("the same directory again: %s, want text with %q", p.err.String(), "not empty")
	}

	p = s.run(0, append(shortTorture, "--quiet", "--out", filepath.Join(t.TempDir(), "b"))...)
	if p.err.String() != "" {
		t.Errorf("with --quiet: stderr %s, want nothing on it", p.err.String())
	}
}

// Locks of all kinds keep their promises.
func TestTortureKinds(t *testing.T) {
	tortureKinds(t, newSite(t, storeVar+"="+redistest.Start(t).URL()))
}

func tortureKinds(t *testing.T, s *site) {
	t.Helper()
	p := s.run(0, append(shortTorture, "--kinds", "--locks", "4", "--out", filepath.Join(t.TempDir(), "history"))...)
	if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "PASS: 0 violations") || !strings.Contains(last, " of 4 locks to ") {
		t.Errorf("stdout: %s, want %q at the beginning of the last line and text with %q", p.out.String(), "PASS: 0 violations", " of 4 locks to ")
	}
}

// Another program deletes the locks all the time, so a lock can have two holders.
func TestTortureFindsAViolation(t *testing.T) {
	server := redistest.Start(t)
	s := newSite(t, "LEASEHOLD_STORE="+server.URL())
	out := filepath.Join(t.TempDir(), "history")
	p := s.start(append(shortTorture, "--locks", "1", "--out", out)...)
	p.in.Close()
	quit, ended := make(chan struct{}), sync.WaitGroup{}
	ended.Go(func() {
		const script = `for _, k in ipairs(redis.call('KEYS', 'leasehold-torture/*')) do redis.call('DEL', k) end`
		for {
			select {
			case <-quit:
				return
			default:
				server.Do(t.Context(), "EVAL", script, "0")
			}
		}
	})
	p.wants(1)
	close(quit)
	ended.Wait()
	if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "FAIL: ") || !strings.Contains(p.out.String(), "VIOLATION of mutual exclusion") {
		t.Errorf("stdout: %s, want %q at the beginning of the last line and text with %q", p.out.String(), "FAIL: ", "VIOLATION of mutual exclusion")
	}
	if page, err := os.ReadFile(filepath.Join(out, "lock-model-1.html")); err != nil || len(page) == 0 {
		t.Errorf("the picture: %v, want a page", err)
	}
}

// A run that is cut short says what it has seen, and leaves nothing.
func TestTortureCutShort(t *testing.T) {
	s := newSite(t)
	p := s.start("lab", "torture", "--for", "1h", "--ttl", "300ms", "--out", filepath.Join(t.TempDir(), "history"))
	p.says(&p.err, "s of 1h")
	p.signal(syscall.SIGINT)
	p.wants(128 + int(syscall.SIGINT))
	if last := lastLineOf(p.out.String()); !strings.HasSuffix(last, "; cut short") {
		t.Errorf("stdout: %s, want %q at the end", p.out.String(), "; cut short")
	}
	if left := workersLeft(); len(left) > 0 {
		t.Errorf("processes %q are left, want none", left)
	}
}

// Even a command that is killed leaves no process behind, stopped ones included.
func TestTortureKilled(t *testing.T) {
	s := newSite(t)
	p := s.start("lab", "torture", "--for", "1h", "--ttl", "300ms", "--out", filepath.Join(t.TempDir(), "history"))
	p.says(&p.err, "s of 1h")
	p.signal(syscall.SIGKILL)
	p.end()
	poll(t, func() string { return strings.Join(workersLeft(), ", ") })
}

func TestTerminalTorture(t *testing.T) {
	s := newSite(t)
	m := s.onTerminal(append(shortTorture, "--out", filepath.Join(t.TempDir(), "history"))...)
	m.shows("s of 1s; ")
	m.wants(0)
	<-m.ended
	shown := m.shown.String()
	first, _, _ := strings.Cut(shown, "\n")
	if !strings.Contains(first, "checking the history") || !strings.Contains(shown, "\r\x1b[Khistory  ") {
		t.Errorf("the progress: %q, want one line that is removed at the end, with text with %q and %q", shown, "checking the history", "\r\x1b[Khistory  ")
	}
}
