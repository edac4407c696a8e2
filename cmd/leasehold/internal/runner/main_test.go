//go:build unix

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/sigaction"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// In a process with this variable set, the test binary is a program that runs
// its arguments with Run, under a lease that is lost when the file it names
// appears. Validity is over then.
const hostVar = "RUNNER_TEST_LEASE"

const (
	// validVar is the validity of that lease, which is not renewed: an hour if it is
	// not set.
	validVar = "RUNNER_TEST_VALID"
	// leftVar is how much validity is left when the lease is lost: none if it is not set.
	leftVar = "RUNNER_TEST_LEFT"
	// roleVar makes the test binary play one of roles.
	roleVar = "RUNNER_TEST_ROLE"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(roles[role](os.Args[1:]))
	}
	if path := os.Getenv(hostVar); path != "" {
		os.Exit(host(path, os.Args[1:]))
	}
	if len(sigaction.Ignored()) > 0 { // Run would have its commands ignore them, too
		child.DefaultSignals()
		os.Exit(again())
	}
	os.Exit(m.Run())
}

// again runs this program again, and returns its exit code.
func again() int {
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return cmd.ProcessState.ExitCode()
}

func host(lease string, args []string) int {
	l := newLease()
	l.deadline = time.Now().Add(durationVar(validVar, time.Hour))
	left := durationVar(leftVar, 0)
	go func() {
		for ; ; time.Sleep(5 * time.Millisecond) {
			if fileExists(lease) {
				l.lose(errLost, left)
				return
			}
		}
	}()
	l.probe = func() {
		if fileExists(lease) {
			l.lose(errLost, left)
		}
	}
	path, err := Resolve(args[0])
	if err != nil {
		panic(err)
	}
	sigs := make(chan os.Signal, 16)
	signal.Notify(sigs, Signals()...)
	o := Run(Command{Path: path, Args: args, Env: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr},
		Config{Lease: l, Budget: Budget{Grace: time.Second, Slack: 100 * time.Millisecond}, Signals: sigs,
			Report: func(s string) { fmt.Fprintln(os.Stderr, "host:", s) }})
	o.Reap()
	return o.Code
}

func durationVar(name string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil {
		return d
	}
	return otherwise
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

var errLost = errors.New("lease lost on purpose")

// lease is a lease that the test controls.
type lease struct {
	mu       sync.Mutex
	done     chan struct{}
	err      error
	deadline time.Time
	probe    func() // called by Err first
	asked    int    // how often Deadline was called
}

func newLease() *lease {
	return &lease{done: make(chan struct{}), deadline: time.Now().Add(time.Hour), probe: func() {}}
}

func (l *lease) Done() <-chan struct{} { return l.done }

func (l *lease) Err() error {
	l.probe()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	return l.deadline
}

// lose ends the lease, with that much validity left.
func (l *lease) lose(err error, left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err, l.deadline = err, time.Now().Add(left)
		close(l.done)
	}
}
