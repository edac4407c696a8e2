package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/built"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// binary is the command, built once.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	child.DefaultSignals()
	dir, err := os.MkdirTemp("", "leasehold-endtoend")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = built.Command(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// process is one run of the command.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
	started  time.Time
}

// command prepares a run. The environment of the test does not choose the store.
func command(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, args...)}
	p.Env = append(append(os.Environ(), "LEASEHOLD_STORE=", "LEASEHOLD_STORE_FILE=", "XDG_STATE_HOME="+t.TempDir()), env...)
	p.Stdout, p.Stderr = &p.out, &p.err
	p.WaitDelay = 10 * time.Second // what it left behind may still have them open
	return p
}

func (p *process) start(t *testing.T) *process {
	t.Helper()
	p.started = time.Now()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
	})
	return p
}

// code waits for the end and returns the exit code, as a shell does: after a signal that ended
// the process, 128 more than its number.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ws, ok := p.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.ProcessState.ExitCode()
}

// storeURL returns the URL of servers or proxies.
func storeURL[S interface{ Addr() string }](servers []S, settings string) string {
	var a []string
	for _, s := range servers {
		a = append(a, s.Addr())
	}
	return "redis://" + strings.Join(a, ",") + settings
}

// durable starts servers that keep over a crash what they promised. Others are quarantined
// after a restart: see docs/limits.md.
func durable(t *testing.T, n int) []*redistest.Server {
	return redistest.StartN(t, n, "--appendonly", "yes", "--appendfsync", "always")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
