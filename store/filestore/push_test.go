//go:build unix

package filestore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
)

// queueOf returns the waiters of a lock, in order.
func queueOf(t *testing.T, s *Store, name string) (owners []string) {
	t.Helper()
	st, err := s.Inspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range st.Queue {
		owners = append(owners, p.Holder.Owner)
	}
	return owners
}

// waitFor starts a Wait and returns once its place is in the queue.
func waitFor(t *testing.T, s *Store, r store.Lease) <-chan store.Grant {
	t.Helper()
	done := make(chan store.Grant, 1)
	go func() {
		g, err := s.Wait(context.WithoutCancel(t.Context()), store.WaitRequest{Lease: r}, nil)
		if err != nil && !errors.Is(err, store.ErrClosed) {
			t.Errorf("wait: %v", err)
		}
		done <- g
	}()
	poll(t, "the waiter is in the queue", func() bool {
		owners := queueOf(t, s, r.Name)
		return len(owners) > 0 && owners[len(owners)-1] == r.Owner
	})
	return done
}

// The step that frees the lock skips waiters whose process was killed, however
// long their places last and however many there are.
func TestDeadWaitersAreSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	holder := request("the lock")
	mustAcquire(t, s, holder)
	var killed []*child
	for range 3 {
		c := start(t, "wait", path, "1h")
		c.line(t)
		killed = append(killed, c)
	}
	next := start(t, "wait", path, "1h")
	owner := next.line(t)
	last := start(t, "wait", path, "1h")
	last.line(t)
	for _, c := range append(killed, last) {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
	}
	if n := len(queueOf(t, s, "the lock")); n != 5 {
		t.Fatalf("%d in the queue, want 5", n)
	}
	mustRelease(t, s, holder)
	if got := holderOf(t, s, "the lock"); got != owner {
		t.Fatalf("handed to %q, want %q", got, owner)
	}
	if line := next.line(t); line != "granted" {
		t.Fatalf("the waiter prints %q, want granted", line)
	}
	// The waiter that is left is dead, too, so that the release frees the lock.
	mustRelease(t, s, store.Lease{Name: "the lock", Owner: owner})
	mustAcquire(t, s, request("the lock"))
}

// A waiter behind a dead one gets the lock even if the holder's lease expires
// instead of being released.
func TestDeadWaiterIsSkippedWhenTheLeaseEnds(t *testing.T) {
	t.Parallel() // it mostly waits
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	holder := request("the lock")
	holder.TTL = 10 * time.Second // a process starts, waits and is killed in that time
	mustAcquire(t, s, holder)
	c := start(t, "wait", path, "1h")
	c.line(t)
	other := request("the lock")
	done := waitFor(t, mustOpen(t, path, nil), other)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	select {
	case <-done:
	case <-time.After(time.Minute): // of an hour
		t.Fatal("the waiter behind a dead one does not get the lock")
	}
}

// lastPush returns where the last message that s receives is recorded.
func lastPush(s *Store) *atomic.Pointer[message] {
	var last atomic.Pointer[message]
	hear := s.push.hear
	s.push.hear = func(m message) {
		last.Store(&m)
		hear(m)
	}
	return &last
}

// A waiter in another process receives its lease in a message and does not ask
// for it.
func TestHandOffIsPushed(t *testing.T) {
	for what, path := range map[string]string{
		"short path": filepath.Join(t.TempDir(), "locks.db"),
		"long path":  filepath.Join(t.TempDir(), strings.Repeat("long", 50), "locks.db"),
	} {
		t.Run(what, func(t *testing.T) {
			s, waits := mustOpen(t, path, &Options{MakeDir: true}), mustOpen(t, path, nil)
			heard := lastPush(waits)
			needsSockets(t, waits)
			if waits.push.socket() == "" {
				t.Fatal("no socket")
			}
			holder, r := request("a"), request("a")
			mustAcquire(t, s, holder)
			done := waitFor(t, waits, r)
			mustRelease(t, s, holder)
			g := <-done
			m := heard.Load()
			if m == nil || m.Lock != "a" || m.Token != g.Token || g.Since < 0 || g.Since > time.Minute {
				t.Fatalf("the message is %+v, want the grant %+v", m, g)
			}
			st, err := s.Inspect(t.Context(), "a")
			if err != nil || st.Holder.Owner != r.Owner || st.Token != g.Token {
				t.Fatalf("inspect: %+v, %v, want the grant %+v", st, err, g)
			}
			mustRelease(t, waits, r)
		})
	}
}

// A late message is ignored, even if the owner waits again, and so is an invalid
// one.
func TestLateMessage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
	heard := lastPush(waits)
	r := request("a")
	var late message
	for round := range 2 {
		holder := request("a")
		mustAcquire(t, s, holder)
		done := waitFor(t, waits, r)
		if round > 0 {
			s.push.send(waits.push.own.name, late)
			poll(t, "the late message arrives", func() bool { m := heard.Load(); return m != nil && *m == late })
			for _, text := range []string{"", "x", strings.Repeat("\xff", 17), strings.Repeat("\xff", 300), strings.Repeat("\x00", 1000)} {
				s.push.wire.send(s.push.dir, waits.push.own.name, []byte(text))
			}
			select {
			case g := <-done:
				t.Fatalf("a late message was taken for a lease: %+v", g)
			case <-time.After(1500 * time.Millisecond): // in which it reads the row
			}
		}
		heard.Store(nil)
		mustRelease(t, s, holder)
		g := <-done
		if g.Token <= late.Token {
			t.Fatalf("granted %+v after %+v, want a larger token", g, late)
		}
		poll(t, "the message arrives", func() bool { return heard.Load() != nil })
		late = *heard.Load()
		mustRelease(t, waits, r)
	}
}

// If messages are lost, waiters poll.
func TestLostMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
	waits.push.hear = func(message) {}
	holder := request("a")
	mustAcquire(t, s, holder)
	done := waitFor(t, waits, request("a"))
	mustRelease(t, s, holder)
	<-done
}

// Sockets that a cleaner removes are made again. A waiter that was taken for dead
// meanwhile still gets the lock.
func TestSocketsAreRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
	holder, r := request("a"), request("a")
	mustAcquire(t, s, holder)
	done := waitFor(t, waits, r)
	before := waits.push.own.name
	if err := os.RemoveAll(waits.push.dir); err != nil {
		t.Fatal(err)
	}
	poll(t, "the socket is made again, and the place names it", func() bool {
		var w waiter
		err := s.read(t.Context(), func(st *step) error {
			r0, err := st.read("a")
			w = r0.Waiters[r.Owner]
			return err
		})
		return err == nil && w.Socket != before && s.push.presence(w.Socket) == alive
	})
	if err := os.RemoveAll(waits.push.dir); err != nil { // and just before the release
		t.Fatal(err)
	}
	mustRelease(t, s, holder)
	<-done
	mustRelease(t, waits, r)
}

// A process whose sockets others cannot find, because it sees another directory at that path,
// is taken for dead only until it stops using sockets.
func TestSocketsElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
	waits.push.dir = filepath.Join(t.TempDir(), "elsewhere"+socketsSuffix)
	if err := os.WriteFile(strings.TrimSuffix(waits.push.dir, socketsSuffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	holder, r := request("a"), request("a")
	mustAcquire(t, s, holder)
	done := waitFor(t, waits, r)
	for { // each time another waiter overtakes it
		next := request("a")
		other := waitFor(t, s, next)
		mustRelease(t, s, holder)
		if holderOf(t, s, "a") == r.Owner {
			break
		}
		<-other
		holder = next
		poll(t, "the waiter is back in the queue", func() bool { return len(queueOf(t, s, "a")) == 1 })
	}
	<-done
	mustRelease(t, waits, r)
}

// The next waiter removes the sockets of a killed process. Without waiters, no sockets are
// left.
func TestSocketsAreCleanedUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	s := mustOpen(t, path, nil)
	holder := request("the lock")
	mustAcquire(t, s, holder)
	c := start(t, "wait", path, "1h")
	c.line(t)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	left, err := os.ReadDir(s.push.dir)
	if err != nil || len(left) != 1 {
		t.Fatalf("sockets: %v, %v, want that of the killed process", left, err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(s.push.dir, left[0].Name()), long, long); err != nil {
		t.Fatal(err)
	}
	waits := mustOpen(t, path, nil)
	r := request("the lock")
	done := waitFor(t, waits, r)
	now, err := os.ReadDir(s.push.dir)
	if err != nil || len(now) != 1 || now[0].Name() == left[0].Name() {
		t.Fatalf("sockets: %v, %v, want that of the new waiter", now, err)
	}
	mustRelease(t, s, holder) // the dead one is skipped without its socket, too
	<-done
	if err := waits.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.push.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of sockets: %v, want that it is removed", err)
	}
}

// Users that can write the lock file can notify its waiters, and no others.
func TestRightsOfSockets(t *testing.T) {
	for _, c := range []struct {
		file, dir, socket os.FileMode
		o                 Options
	}{
		{0o600, 0o700, 0o600, Options{}},
		{0o644, 0o744, 0o644, Options{}},
		{0o660, 0o770, 0o660, Options{Shared: true}},
		{0o666, 0o777, 0o666, Options{Shared: true}},
	} {
		path := filepath.Join(t.TempDir(), "locks.db")
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, c.file)); err != nil {
			t.Fatal(err)
		}
		s := mustOpen(t, path, &c.o)
		name := s.push.socket()
		if name == "" {
			t.Fatalf("%v: no socket", c.file)
		}
		if dir, socket := mode(t, s.push.dir), mode(t, filepath.Join(s.push.dir, name)); dir != c.dir || socket != c.socket {
			t.Errorf("file %v: directory %v, socket %v, want %v, %v", c.file, dir, socket, c.dir, c.socket)
		}
	}
}

// A directory that another user could have made is not used.
func TestStrangeSocketDirectory(t *testing.T) {
	for what, spoil := range map[string]func(dir string) error{
		"all users can write it": func(dir string) error { return errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777)) },
		"a file":                 func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"a link":                 func(dir string) error { return os.Symlink(filepath.Dir(dir), dir) },
	} {
		path := filepath.Join(t.TempDir(), "locks.db")
		s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
		if err := spoil(s.push.dir); err != nil {
			t.Fatal(err)
		}
		if name := waits.push.socket(); name != "" {
			t.Errorf("%s: the store uses the socket %s, want none", what, name)
		}
		holder := request("a")
		mustAcquire(t, s, holder)
		done := waitFor(t, waits, request("a"))
		mustRelease(t, s, holder)
		<-done
	}
	// A row cannot name a socket that is elsewhere.
	s := mustOpen(t, filepath.Join(t.TempDir(), "locks.db"), nil)
	for _, name := range []string{"", ".", "..", "../x", "/x", "a/b", strings.Repeat("x", 17), "../../xxxxxxxxxx", strings.Repeat("x", 15) + "\x00"} {
		if p := s.push.presence(name); p != unknown {
			t.Errorf("presence at socket %q: %v, want unknown", name, p)
		}
	}
}

// A copy of the directory does not have the waiters of the original.
func TestWaitersInACopy(t *testing.T) {
	dir := t.TempDir()
	path, copied := filepath.Join(dir, "a", "locks.db"), filepath.Join(dir, "b", "locks.db")
	s := mustOpen(t, path, &Options{MakeDir: true})
	holder := request("the lock")
	token := mustAcquire(t, s, holder).Token
	c := start(t, "wait", path, "1h")
	owner := c.line(t)
	if out, err := exec.Command("cp", "-a", filepath.Dir(path), filepath.Dir(copied)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	other := mustOpen(t, copied, nil)
	mustRelease(t, other, holder)
	if got := holderOf(t, other, "the lock"); got != "" {
		t.Errorf("in the copy the lock was handed to %s, want it free", got)
	}
	mustRelease(t, s, holder)
	if got := holderOf(t, s, "the lock"); got != owner {
		t.Errorf("the original was handed to %q, want %s", got, owner)
	}
	if line := c.line(t); line != "granted" {
		t.Errorf("the waiter prints %q, want granted", line)
	}
	if g := mustAcquire(t, other, request("another")); g.Token <= token {
		t.Errorf("token %v in the copy, want one above %v", g.Token, token)
	}
}

func TestMessageEncoding(t *testing.T) {
	for _, m := range []message{
		{Lock: "a", Wait: "w"},
		{Broken: strings.Repeat("o", store.MaxOwner)},
		{Lock: strings.Repeat("\x00\xff", store.MaxName/2), Wait: strings.Repeat("w", 255), Token: fence.Max, Expiry: 1 << 62},
	} {
		got, ok := decodeMessage(m.encode())
		if !ok || got != m {
			t.Errorf("%+v is decoded as %+v, %v", m, got, ok)
		}
	}
}

// A closed store leaves no file descriptor open.
func TestNoDescriptorIsLeft(t *testing.T) {
	open := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	path := filepath.Join(t.TempDir(), "locks.db")
	round := func() {
		s, waits := mustOpen(t, path, nil), mustOpen(t, path, nil)
		holder, r := request("a"), request("a")
		mustAcquire(t, s, holder)
		done := waitFor(t, waits, r)
		mustRelease(t, s, holder)
		<-done
		mustRelease(t, waits, r)
		if _, err := OpenFile(t.Context(), path+" which is/not there", nil); err == nil {
			t.Error("opened a file in a missing directory")
		}
		if err := errors.Join(s.Close(), waits.Close()); err != nil {
			t.Fatal(err)
		}
	}
	round() // which may open descriptors that stay open
	before := open()
	for range 10 {
		round()
	}
	if after := open(); after > before {
		t.Errorf("%d descriptors after 10 rounds, want the %d of before", after, before)
	}
}
