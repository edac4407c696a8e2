//go:build linux

package etcdstore_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/validity"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/etcdstore"
)

func init() {
	roles["share"] = share
	roles["pause"] = pause
}

// worker is a process of this test binary.
type worker struct {
	*child.Process
	in  io.Writer
	out *bufio.Reader
	log *os.File
}

func start(t *testing.T, role string, args ...string) *worker {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), roleVar+"="+role, "GORACE=atexit_sleep_ms=0")
	w := &worker{}
	if w.log, err = os.Create(filepath.Join(t.TempDir(), "stderr")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.log.Close() })
	out, into, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	defer into.Close()
	cmd.Stdout, cmd.Stderr = into, w.log
	if w.in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if w.Process, err = child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Kill)
	return w
}

// line returns the next line that the process prints.
func (w *worker) line(t *testing.T) string {
	t.Helper()
	line, err := w.out.ReadString('\n')
	if err != nil {
		said, _ := os.ReadFile(w.log.Name())
		t.Fatalf("the process prints no further line: %v\n%s", err, said)
	}
	return strings.TrimSuffix(line, "\n")
}

// presence shows processes which of them are inside. Each one locks a file of its own while it
// is, and the kernel unlocks it when the process is killed.
type presence struct {
	dir  string
	mine *os.File
}

// inside is the content of the file of a process: in which role it is inside, and until when
// its lease is valid.
type inside struct {
	kind  string // "reader", "writer" or the number of a slot
	until clock.Instant
}

func (p *presence) enter(me inside) error {
	if _, err := p.mine.WriteAt(fmt.Appendf(nil, "%-10s %30d", me.kind, me.until), 0); err != nil {
		return err
	}
	if err := syscall.Flock(int(p.mine.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(p.dir, "inside-*"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if name == p.mine.Name() {
			continue
		}
		other, there, err := look(name)
		if err != nil {
			return err
		}
		if there && clash(me.kind, other.kind) && clock.System().Now() < min(me.until, other.until) {
			return fmt.Errorf("violation: %s beside %s", me.kind, other.kind)
		}
	}
	return nil
}

func (p *presence) leave() error { return syscall.Flock(int(p.mine.Fd()), syscall.LOCK_UN) }

func look(name string) (other inside, there bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return other, false, err
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err == nil {
		return other, false, nil
	} else if !errors.Is(err, syscall.EWOULDBLOCK) {
		return other, false, err
	}
	_, err = fmt.Fscan(f, &other.kind, &other.until)
	return other, true, err
}

// clash reports whether two roles cannot be inside together. Readers and writers use one
// lock, and slots another.
func clash(a, b string) bool {
	of := func(kind string) bool { return kind == "reader" || kind == "writer" }
	if of(a) && of(b) {
		return a == "writer" || b == "writer"
	}
	return a == b
}

// above checks that a token is above the one in a file, and records it there if note is set.
func above(name string, token uint64, note bool, until clock.Instant) error {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close() // which unlocks it
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	var last uint64
	if _, err := fmt.Fscan(f, &last); err != nil && err != io.EOF {
		return err
	}
	if token <= last && clock.System().Now() < until {
		return fmt.Errorf("violation: token %d after %d in %s", token, last, filepath.Base(name))
	}
	if !note {
		return nil
	}
	_, err = f.WriteAt(fmt.Appendf(nil, "%30d", max(token, last)), 0)
	return err
}

// share takes turns at a read-write lock and a semaphore until it is killed, and reports
// each. In some turns it prints "stays" and stays inside.
func share(args []string) error {
	endpoint, prefix, dir := args[0], args[1], args[2]
	const limit, ttl = 3, 2 * time.Second
	ctx := context.Background()
	s, err := etcdstore.Open(ctx, urlOf(endpoint), &etcdstore.Options{Prefix: prefix, Timeout: time.Minute})
	if err != nil {
		return err
	}
	p := &presence{dir: dir}
	if p.mine, err = os.Create(filepath.Join(dir, fmt.Sprintf("inside-%d", os.Getpid()))); err != nil {
		return err
	}
	for n := os.Getpid(); ; n++ {
		l := []store.Lease{reader("rw", ttl), as(request("permits", ttl), store.Semaphore(limit), 1), writer("rw", ttl)}[n%3]
		began := clock.System().Now()
		g, err := s.Wait(ctx, store.WaitRequest{Lease: l}, nil)
		if err != nil {
			return err
		}
		me := inside{kind: fmt.Sprint(g.Slot), until: validity.Until(began.Add(g.Since), ttl)}
		name := "permit"
		if g.Slot < 0 || g.Slot >= limit && !l.Kind.Shared {
			return fmt.Errorf("violation: slot %d of %d", g.Slot, limit)
		}
		if l.Kind.Shared {
			if me.kind = "writer"; l.SharesToken() {
				me.kind = "reader"
			}
			name = me.kind
		}
		if err := p.enter(me); err != nil {
			return err
		}
		for _, name := range map[string][]string{"reader": {"-written", "read"}, "writer": {"written", "-read"}, "permit": {"slot" + me.kind}}[name] {
			file, check := strings.CutPrefix(name, "-")
			if name == "read" { // readers share a token: they only note it
				err = above(filepath.Join(dir, file), uint64(g.Token), true, 0)
			} else {
				err = above(filepath.Join(dir, file), uint64(g.Token), !check, me.until)
			}
			if err != nil {
				return err
			}
		}
		if n%8 == 0 {
			fmt.Println("stays", name)
			time.Sleep(ttl / 2)
		}
		if err := p.leave(); err != nil {
			return err
		}
		if err := s.Release(ctx, store.ReleaseRequest{Lease: l}); err != nil && !errors.Is(err, store.ErrNotHeld) {
			return err
		}
		fmt.Println("turn")
	}
}

// Processes share a read-write lock and a semaphore while some of them are killed inside:
// no writer is beside a reader, no slot has two holders, tokens are in order, and the
// others go on.
func TestKilledHoldersOfSharedLocks(t *testing.T) {
	t.Parallel()
	dir, prefix := t.TempDir(), "killed-"+rand.Text()
	type event struct {
		from int // number of the process
		text string
	}
	events, over := make(chan event), make(chan struct{})
	defer close(over)
	alive := make(map[int]*worker)
	turns := make(map[int]int)
	started := 0
	begin := func() {
		w, me := start(t, "share", server.Endpoints()[0], prefix, dir), started
		started++
		alive[me], turns[me] = w, 0
		go func() {
			for ended := false; !ended; {
				line, err := w.out.ReadString('\n')
				ended = err != nil
				select {
				case events <- event{me, strings.TrimSpace(line)}:
				case <-over:
					return
				}
			}
		}()
	}
	next := func() event {
		select {
		case e := <-events:
			if w := alive[e.from]; w != nil && e.text == "" {
				said, _ := os.ReadFile(w.log.Name())
				t.Fatalf("a process has ended: %v\n%s", w.Err(), said)
			}
			turns[e.from]++
			return e
		case <-time.After(patience):
			t.Fatalf("no process had a turn within %v", patience)
		}
		panic("not reached")
	}
	// allHaveTurns waits until all processes have had so many more turns.
	allHaveTurns := func(n int) {
		want := make(map[int]int)
		for me := range alive {
			want[me] = turns[me] + n
		}
		for me := range want {
			for turns[me] < want[me] {
				next()
			}
		}
	}
	for range 4 {
		begin()
	}
	allHaveTurns(2)
	for _, kind := range []string{"reader", "writer", "permit"} {
		for {
			if e := next(); e.text == "stays "+kind && alive[e.from] != nil {
				alive[e.from].Kill()
				delete(alive, e.from)
				break
			}
		}
		begin()
		allHaveTurns(3)
	}
}

// pause holds a writer's lease and is stopped meanwhile.
func pause(args []string) error {
	ctx := context.Background()
	s, err := etcdstore.Open(ctx, urlOf(args[:1]...), &etcdstore.Options{Prefix: args[1], Timeout: time.Minute})
	if err != nil {
		return err
	}
	defer s.Close()
	lease, err := leasehold.New(s, nil).RW("a").Write().With(leasehold.LockOptions{TTL: 3 * time.Second}).Acquire(ctx)
	if err != nil {
		return err
	}
	fmt.Println(uint64(lease.Token()))
	if _, err := os.Stdin.Read(make([]byte, 1)); err != nil {
		return err
	}
	if err := lease.Err(); err == nil {
		fmt.Println("works on")
	} else {
		fmt.Println("told:", err)
	}
	<-lease.Context().Done()
	fmt.Println("ended:", context.Cause(lease.Context()))
	return nil
}

// A process that is stopped until its lease is over learns so before it works on. The reader
// that has the lock then has a larger token.
func TestStoppedWriterIsTold(t *testing.T) {
	t.Parallel()
	prefix := "stopped-" + rand.Text()
	w := start(t, "pause", server.Endpoints()[0], prefix)
	var token uint64
	if _, err := fmt.Sscan(w.line(t), &token); err != nil {
		t.Fatal(err)
	}
	if err := w.Freeze(); err != nil {
		t.Fatal(err)
	}
	s := open(t, server.Endpoints(), etcdstore.Options{Prefix: prefix})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g, err := s.Wait(ctx, store.WaitRequest{Lease: reader("a", time.Minute)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(g.Token) <= token {
		t.Errorf("the reader has token %v, want one above %v", g.Token, token)
	}
	if _, err := io.WriteString(w.in, "\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Thaw(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"told: ", "ended: "} {
		if line := w.line(t); !strings.HasPrefix(line, want) || !strings.Contains(line, "lost") {
			t.Errorf("the process says %q, want %q and that its lease is lost", line, want)
		}
	}
	if err := w.Err(); err != nil {
		t.Error(err)
	}
}
