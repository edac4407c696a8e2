//go:build unix

package endtoend

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// arena is a directory and three servers where processes contend for locks of every kind.
type arena struct {
	t       *testing.T
	servers []*redistest.Server
	dir     string
}

func newArena(t *testing.T) *arena {
	return &arena{t, redistest.StartN(t, 3), t.TempDir()}
}

// contender is a process that takes a lock, and holds it until the test ends it.
type contender struct {
	*process
	a  *arena
	me string
}

// starts starts the command with these arguments. What it runs writes its token and slot to
// a file when it holds the lock, and ends when the test writes another.
func (a *arena) starts(me string, args ...string) *contender {
	a.t.Helper()
	const work = `echo "$LEASEHOLD_TOKEN ${LEASEHOLD_SLOT:-0}" > "$DIR/new.$ME" && mv "$DIR/new.$ME" "$DIR/$ME"
until [ -e "$DIR/end.$ME" ]; do sleep 0.05; done`
	args = append(args, "--ttl", "5s", "--", "sh", "-c", work)
	env := []string{"DIR=" + a.dir, "ME=" + me, "LEASEHOLD_STORE=" + storeURL(a.servers, patiently)}
	return &contender{command(a.t, env, args...).start(a.t), a, me}
}

// holds waits until the contender has the lock, and returns its token and its slot.
func (c *contender) holds() (token uint64, slot string) {
	c.a.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !c.has(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.Process.Kill()
			c.Wait() // until all its output is there
			c.a.t.Fatalf("%s does not have the lock after two minutes, want it to\n%s", c.me, &c.err)
		}
	}
	text, err := os.ReadFile(filepath.Join(c.a.dir, c.me))
	first, slot, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if err == nil {
		token, err = strconv.ParseUint(first, 10, 64)
	}
	if err != nil {
		c.a.t.Fatalf("%s: %q: %v", c.me, text, err)
	}
	return token, slot
}

func (c *contender) has() bool { return exists(filepath.Join(c.a.dir, c.me)) }

// ends lets the command end, and fails the test unless its exit code is 0.
func (c *contender) ends() {
	c.a.t.Helper()
	if err := os.WriteFile(filepath.Join(c.a.dir, "end."+c.me), nil, 0o600); err != nil {
		c.a.t.Fatal(err)
	}
	c.wants(0)
}

func (c *contender) wants(code int) {
	c.a.t.Helper()
	if got := c.code(c.a.t); got != code {
		c.a.t.Errorf("%s: exit code %d, want %d\n%s", c.me, got, code, &c.err)
	}
}

func (c *contender) signal(s syscall.Signal) {
	c.a.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.a.t.Fatal(err)
	}
}

// queue waits until n wait for the lock at every server.
func (a *arena) queue(name string, n int) {
	a.t.Helper()
	for _, s := range a.servers {
		eventually.True(a.t, strconv.Itoa(n)+" wait for "+name, func() bool {
			return s.Text(a.t, "LLEN", "{"+name+"}:line") == strconv.Itoa(n)
		})
	}
}

// Two holders of a semaphore and a waiter end abruptly, by kill -9 and by a stop that lasts
// longer than the TTL. Only their own permits become free, once each, and go to the waiters
// that live, with larger tokens. The stopped one learns of its loss when it is continued.
func TestKilledHoldersOfASemaphore(t *testing.T) {
	t.Parallel() // it mostly waits
	a := newArena(t)
	permit := func(me string) *contender { return a.starts(me, "run", "pool", "--permits", "3") }
	killed, frozen, left := permit("killed"), permit("frozen"), permit("left")
	token1, slot1 := killed.holds()
	token2, slot2 := frozen.holds()
	_, slot3 := left.holds()
	dead := permit("dead")
	a.queue("pool", 1)
	next := permit("next")
	a.queue("pool", 2)
	dead.signal(syscall.SIGKILL)
	killed.signal(syscall.SIGKILL)
	token4, slot4 := next.holds()
	if slot4 != slot1 || token4 <= token1 {
		t.Errorf("slot %s with token %d after slot %s with token %d, want the same slot and a larger token", slot4, token4, slot1, token1)
	}
	frozen.signal(syscall.SIGSTOP)
	last := permit("last")
	token5, slot5 := last.holds()
	if slot5 != slot2 || token5 <= token2 {
		t.Errorf("slot %s with token %d after slot %s with token %d, want the same slot and a larger token", slot5, token5, slot2, token2)
	}
	busy := command(t, []string{"LEASEHOLD_STORE=" + storeURL(a.servers, patiently)}, "run", "pool", "--permits", "3", "--try", "--", "true").start(t)
	if code := busy.code(t); code != 124 {
		t.Errorf("a fourth holder beside slots %s, %s and %s: exit code %d\n%s, want exit code %d", slot3, slot4, slot5, code, &busy.err, 124)
	}
	frozen.signal(syscall.SIGCONT)
	frozen.wants(123)
	if dead.has() {
		t.Error("a killed waiter has a permit, want none")
	}
	for _, c := range []*contender{left, next, last} {
		c.ends()
	}
}

// A reader and a waiting writer are killed outright: the other reader keeps the lock, and
// readers that wait behind the writer join it. A writer that is killed frees the lock for
// readers, with a larger token.
func TestKilledReadersAndWriters(t *testing.T) {
	t.Parallel() // it mostly waits
	a := newArena(t)
	read := func(me string) *contender { return a.starts(me, "run", "book", "--shared") }
	write := func(me string) *contender { return a.starts(me, "run", "book", "--exclusive") }
	killed, left := read("killed"), read("left")
	killed.holds()
	token1, _ := left.holds()
	dead := write("dead")
	a.queue("book", 1)
	joins := read("joins")
	a.queue("book", 2)
	killed.signal(syscall.SIGKILL)
	dead.signal(syscall.SIGKILL)
	token2, _ := joins.holds()
	writer := write("writer")
	a.queue("book", 1)
	if writer.has() {
		t.Error("a writer has the lock beside readers, want it to wait")
	}
	left.ends()
	joins.ends()
	token3, _ := writer.holds()
	if token3 <= token1 || token3 <= token2 {
		t.Errorf("the writer has token %d after readers with %d and %d, want a larger one", token3, token1, token2)
	}
	last := read("last")
	a.queue("book", 1)
	writer.signal(syscall.SIGKILL)
	if token4, _ := last.holds(); token4 <= token3 {
		t.Errorf("a reader has token %d after a writer with %d, want a larger one", token4, token3)
	}
	if dead.has() {
		t.Error("a killed waiter has the lock, want none")
	}
	last.ends()
}

// A leader, and a holder of several locks of different kinds, are killed outright: the next
// candidate and the next holder get all of it, with larger tokens.
func TestKilledLeaderAndKilledHolderOfSeveral(t *testing.T) {
	t.Parallel() // it mostly waits
	a := newArena(t)
	elect := func(me string) *contender { return a.starts(me, "elect", "chief") }
	several := func(me string) *contender {
		return a.starts(me, "run", "n", "--permits", "2", "--also", "m", "--also", "o")
	}
	leader, first := elect("leader"), several("first")
	token1, _ := leader.holds()
	token2, _ := first.holds()
	candidate, second := elect("candidate"), several("second")
	a.queue("chief", 1)
	a.queue("m", 1)
	leader.signal(syscall.SIGKILL)
	first.signal(syscall.SIGKILL)
	if token, _ := candidate.holds(); token <= token1 {
		t.Errorf("the next leader has token %d after %d, want a larger one", token, token1)
	}
	if token, _ := second.holds(); token <= token2 {
		t.Errorf("the next holder has token %d after %d, want a larger one", token, token2)
	}
	second.ends()
	candidate.signal(syscall.SIGTERM)
	candidate.wants(143)
}
