//go:build unix

package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// In a process with this variable set, the test binary is a program that runs
// its arguments with Run, under a lease that is lost when the file it names
// appears. Validity is over then.
const hostVar = "RUNNER_TEST_LEASE"

func TestMain(m *testing.M) {
	if path := os.Getenv(hostVar); path != "" {
		os.Exit(host(path, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func host(lease string, args []string) int {
	l := newLease()
	go func() {
		for ; ; time.Sleep(5 * time.Millisecond) {
			if fileExists(lease) {
				l.lose(errLost, 0)
				return
			}
		}
	}()
	l.probe = func() {
		if fileExists(lease) {
			l.lose(errLost, 0)
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
	return o.Code
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

var errLost = errors.New("lease lost on purpose")

// lease is a lease in a test's hands.
type lease struct {
	mu       sync.Mutex
	done     chan struct{}
	err      error
	deadline time.Time
	probe    func() // called by Err first
	asked    atomic.Int32
}

func newLease() *lease {
	return &lease{done: make(chan struct{}), deadline: time.Now().Add(time.Hour), probe: func() {}}
}

func (l *lease) Done() <-chan struct{} { return l.done }

func (l *lease) Err() error {
	l.probe()
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.asked.Add(1)
	return l.err
}

func (l *lease) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
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
