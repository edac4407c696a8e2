package filestore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

// roles has what a process of this test binary can do for a test.
var roles = map[string]func(args []string) error{
	"contend":            contend,
	"hold":               hold,
	"wait":               wait,
	"churn":              churn,
	"turns until killed": takeTurns,
	"refused":            refused,
}

// child is a process of this test binary.
type child struct {
	*exec.Cmd
	out    *bufio.Reader
	stderr bytes.Buffer
	in     io.WriteCloser
}

// command returns the command that starts a child in a role.
func command(t testing.TB, role string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(exe, args...)
	c.Env = append(os.Environ(), childRole+"="+role, "GORACE=atexit_sleep_ms=0") // no wait for late reports
	return c
}

// start starts a child, which is killed at the end of the test if it still runs.
func start(t testing.TB, role string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: command(t, role, args...)}
	c.Stderr = &c.stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // it has usually ended
		_ = c.Wait()
	})
	return c
}

// line returns the next line that the process prints.
func (c *child) line(t testing.TB) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		_ = c.Wait()
		t.Fatalf("the process ended early: %v\n%s", err, &c.stderr)
	}
	return strings.TrimSuffix(line, "\n")
}

// begin lets a process in ready go on.
func (c *child) begin(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(c.in, "\n"); err != nil {
		t.Fatal(err)
	}
}

// end waits until the process has ended, and requires that it succeeded.
func (c *child) end(t testing.TB) {
	t.Helper()
	rest, _ := io.ReadAll(c.out)
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s%s", err, rest, &c.stderr)
	}
}

// ready waits until the test calls begin.
func ready() {
	fmt.Println("ready")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// contend enters a critical section a number of times and records each token in the order
// of entry. It acquires the lock for that, waits for it, or does without it. It fails if
// another process is inside.
func contend(args []string) error {
	path, dir, waits := args[0], args[1], args[2] == "waiting"
	locked := waits || args[2] == "locked"
	rounds, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, urlOf(path), nil)
	if err != nil {
		return err
	}
	defer s.Close()
	ready()
	for range rounds {
		r := request("the lock")
		var g store.Grant
		for locked {
			if waits {
				g, err = s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
			} else {
				g, err = s.Acquire(ctx, store.AcquireRequest{Lease: r})
			}
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrBusy) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		if err := section(dir, g); err != nil {
			return err
		}
		if locked {
			if err := s.Release(ctx, store.ReleaseRequest{Lease: r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// section is the critical section. If two processes are in it at once, one fails to make the
// directory.
func section(dir string, g store.Grant) error {
	inside := filepath.Join(dir, "inside")
	if err := os.Mkdir(inside, 0o700); err != nil {
		return fmt.Errorf("critical sections overlap: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, "tokens"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(log, g.Token)
	time.Sleep(200 * time.Microsecond) // the work, during which the others try
	return errors.Join(err, log.Close(), os.Remove(inside))
}

func TestTwoProcessesNeverOverlap(t *testing.T) { neverOverlap(t, "locked", 2, 100) }

func TestProcessesThatWaitNeverOverlap(t *testing.T) { neverOverlap(t, "waiting", 4, 40) }

func neverOverlap(t *testing.T, how string, processes, rounds int) {
	dir := t.TempDir()
	var both []*child
	for range processes {
		c := start(t, "contend", filepath.Join(dir, "locks"), dir, how, strconv.Itoa(rounds))
		c.line(t)
		both = append(both, c)
	}
	for _, c := range both {
		c.begin(t)
	}
	for _, c := range both {
		c.end(t)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	entries := strings.Fields(string(text))
	if len(entries) != processes*rounds {
		t.Fatalf("%d entries, want %d", len(entries), processes*rounds)
	}
	last := 0
	for _, e := range entries {
		token, err := strconv.Atoi(e)
		if err != nil || token <= last {
			t.Fatalf("token %q (%v) after %d, want a larger one", e, err, last)
		}
		last = token
	}
}

// The tests above would notice an overlap.
func TestWithoutTheLockTheyOverlap(t *testing.T) {
	for range 50 {
		dir := t.TempDir()
		var both []*child
		for range 2 {
			c := start(t, "contend", filepath.Join(dir, "locks"), dir, "unlocked", "1000")
			c.line(t)
			both = append(both, c)
		}
		for _, c := range both {
			c.begin(t)
		}
		for _, c := range both {
			_, _ = io.Copy(io.Discard, c.out)
			if c.Wait() != nil && strings.Contains(c.stderr.String(), "overlap") {
				return
			}
		}
	}
	t.Fatal("two processes ran 50 x 1000 sections without a lock, and none overlapped")
}

// hold acquires a lock and keeps it, while it writes to the file, until it is killed.
func hold(args []string) error {
	ttl, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := Open(ctx, urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	r := request("the lock")
	r.TTL = ttl
	g, err := s.Acquire(ctx, store.AcquireRequest{Lease: r})
	if err != nil {
		return err
	}
	fmt.Println(g.Token)
	for {
		other := request("another lock")
		if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: other}); err != nil {
			return err
		}
		if err := s.Release(ctx, store.ReleaseRequest{Lease: other}); err != nil {
			return err
		}
	}
}

// The lock of a killed process is free at once, and the log intact.
func TestKilledProcess(t *testing.T) {
	if !pushes {
		t.Skip("leases of processes that have ended last for their TTL on this system")
	}
	path := filepath.Join(t.TempDir(), "locks")
	var last store.Grant
	for round := range 8 {
		c := start(t, "hold", path, "1h")
		token, err := strconv.Atoi(c.line(t))
		if err != nil || token <= int(last.Token) {
			t.Fatalf("round %d: token %d (%v) after %v, want a larger one", round, token, err, last.Token)
		}
		time.Sleep(time.Duration(round) * 3 * time.Millisecond) // so that it is killed at different moments
		s := mustOpen(t, path, nil)
		if _, err := s.Acquire(t.Context(), store.AcquireRequest{Lease: request("the lock")}); !errors.Is(err, store.ErrBusy) {
			t.Fatalf("round %d: acquire while the holder lives: %v, want %v", round, err, store.ErrBusy)
		}
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		for _, name := range []string{"the lock", "another lock"} {
			r := request(name)
			g := mustAcquire(t, s, r)
			if name == "the lock" {
				if last = g; int(g.Token) <= token {
					t.Fatalf("token %v after %d, want a larger one", g.Token, token)
				}
			}
			mustRelease(t, s, r)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// wait waits for the lock until it is killed. It prints its owner once it waits, and
// "granted" once it has the lock.
func wait(args []string) error {
	ttl, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	s, err := Open(context.Background(), urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	r := request("the lock")
	r.TTL = ttl
	printed := false
	_, err = s.Wait(context.Background(), store.WaitRequest{Lease: r}, func(error) {
		if !printed {
			fmt.Println(r.Owner)
		}
		printed = true
	})
	fmt.Println("granted")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
	return err
}

func holderOf(t *testing.T, s *store.Store, name string) string {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return st.Holder.Owner
}

// takeTurns waits for the lock and records when it is inside, until it is killed.
func takeTurns(args []string) error {
	ctx := context.Background()
	s, err := Open(ctx, urlOf(args[0]), nil)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	for {
		r := request("the lock")
		r.Owner = fmt.Sprint(os.Getpid(), "-", r.Owner)
		g, err := s.Wait(ctx, store.WaitRequest{Lease: r}, nil)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(log, "in", g.Token); err != nil {
			return err
		}
		time.Sleep(200 * time.Microsecond) // the work
		if _, err := fmt.Fprintln(log, "out", g.Token); err != nil {
			return err
		}
		if err := s.Release(ctx, store.ReleaseRequest{Lease: r}); err != nil {
			return err
		}
	}
}

// Waiters and holders are killed and restarted repeatedly. No two surviving
// holders overlap, tokens rise, and the lock is still handed on.
func TestProcessesAreKilled(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	path, log := filepath.Join(dir, "locks"), filepath.Join(dir, "log")
	var all []*child
	for range 6 {
		all = append(all, start(t, "turns until killed", path, log))
	}
	turns := func() int {
		text, _ := os.ReadFile(log) // missing at first
		return bytes.Count(text, []byte("out "))
	}
	s := mustOpen(t, path, nil)
	dead := map[string]bool{}
	for round := range 20 {
		seen := turns()
		poll(t, "the lock is handed on", func() bool {
			// A process that was killed while it had the lock keeps it for its TTL.
			// The test ends such leases, to be quick.
			owner := holderOf(t, s, "the lock")
			if pid, _, _ := strings.Cut(owner, "-"); dead[pid] {
				mustRelease(t, s, store.Lease{Name: "the lock", Owner: owner, TTL: time.Minute})
			}
			return turns() > seen+10
		})
		victim := &all[round%len(all)]
		if err := (*victim).Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = (*victim).Wait()
		dead[strconv.Itoa((*victim).Process.Pid)] = true
		*victim = start(t, "turns until killed", path, log)
	}
	for _, c := range all {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	last, left := 0, 0
	for line := range strings.Lines(string(text)) {
		var what string
		var token int
		if _, err := fmt.Sscan(line, &what, &token); err != nil {
			t.Fatal(err)
		}
		switch {
		case what == "in" && token <= last:
			t.Fatalf("token %d after %d, want a larger one", token, last)
		case what == "out" && token != last:
			t.Fatalf("token %d left while %d was inside", token, last)
		case what == "in":
			last = token
		default:
			left = token
		}
	}
	if left == 0 {
		t.Fatal("no process was ever inside")
	}
}

// churn opens the file, acquires a lock of its own and the common one, and closes the file,
// again and again.
func churn(args []string) error {
	rounds, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx := context.Background()
	ready()
	last := store.Grant{}
	for range rounds {
		s, err := Open(ctx, urlOf(args[0]), &Options{Timeout: time.Minute, MakeDir: true})
		if err != nil {
			return err
		}
		own := request(strconv.Itoa(os.Getpid()))
		g, err := s.Acquire(ctx, store.AcquireRequest{Lease: own})
		if err != nil {
			return err
		}
		if g.Token <= last.Token {
			return fmt.Errorf("token %v after %v", g.Token, last.Token)
		}
		last = g
		common := request("common")
		if _, err := s.Acquire(ctx, store.AcquireRequest{Lease: common}); err == nil {
			if err := s.Release(ctx, store.ReleaseRequest{Lease: common}); err != nil {
				return err
			}
		} else if !errors.Is(err, store.ErrBusy) {
			return err
		}
		if err := s.Release(ctx, store.ReleaseRequest{Lease: own}); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// If many processes open a missing file at once, the tables are made once and
// every process succeeds.
func TestFirstOpenByMany(t *testing.T) {
	for round := range 5 {
		path := filepath.Join(t.TempDir(), "a", "b", "locks")
		var all []*child
		for range 8 {
			c := start(t, "churn", path, "1")
			c.line(t)
			all = append(all, c)
		}
		for _, c := range all {
			c.begin(t)
		}
		for _, c := range all {
			c.end(t)
		}
		if round > 0 {
			continue
		}
		s := mustOpen(t, path, nil)
		if g := mustAcquire(t, s, request("next")); g.Token <= 8 {
			t.Fatalf("token %v after at least 8 grants, want more than 8", g.Token)
		}
	}
}

// Processes that open and close the folder concurrently do not disturb each other.
func TestProcessesOpenAndCloseTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks")
	var all []*child
	for range 4 {
		c := start(t, "churn", path, "40")
		c.line(t)
		all = append(all, c)
	}
	for _, c := range all {
		c.begin(t)
	}
	for _, c := range all {
		c.end(t)
	}
}

// refused opens a file that it may not open, and prints why.
func refused(args []string) error {
	_, err := Open(context.Background(), urlOf(args[0]), &Options{Timeout: time.Second, MakeDir: true})
	if err == nil {
		return errors.New("the file was opened")
	}
	fmt.Println(err)
	return nil
}

// poll waits until ok returns true.
func poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}
