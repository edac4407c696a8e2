package endtoend

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// patiently gives servers as long as a busy machine may need to answer.
const patiently = "?node_timeout=5s&connect_timeout=20s"

// critical is a command that fails if it is ever run by two at once: mkdir
// succeeds for one only. It also appends its token to a file.
const critical = `mkdir "$DIR/inside" || { echo "two inside" >&2; exit 42; }
echo "$LEASEHOLD_TOKEN" >> "$DIR/tokens"
rmdir "$DIR/inside"`

// Two processes, fifty rounds each, over five servers of which two are killed
// and restarted meanwhile: never two inside, and tokens only rise.
func TestTwoProcessesOverFiveServers(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := durable(t, 5)
	dir := t.TempDir()
	env := []string{"DIR=" + dir, "LEASEHOLD_STORE=" + storeURL(servers, "?node_timeout=2s&connect_timeout=20s")}
	const rounds = 50
	var processes sync.WaitGroup
	for range 2 {
		processes.Go(func() {
			for range rounds {
				p := command(t, env, "run", "shared", "--ttl", "6s", "--quiet", "--", "sh", "-c", critical).start(t)
				if code := p.code(t); code != 0 {
					t.Errorf("exit code %d\n%s, want exit code %d", code, &p.err, 0)
					return
				}
			}
		})
	}
	// After every twenty turns, two servers die at some moment and come back. Leases
	// whose release they missed stay for their TTL, so that is short here.
	var faults sync.WaitGroup
	faults.Go(func() {
		for i := range 2*rounds/20 - 1 {
			eventually.True(t, "turns go on", func() bool {
				text, _ := os.ReadFile(filepath.Join(dir, "tokens"))
				return strings.Count(string(text), "\n") >= (i+1)*20 || t.Failed()
			})
			pair := []*redistest.Server{servers[i%5], servers[(i+2)%5]}
			for _, s := range pair {
				s.Kill()
			}
			for _, s := range pair {
				if err := s.Restart(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	processes.Wait()
	faults.Wait()
	text, err := os.ReadFile(filepath.Join(dir, "tokens"))
	if err != nil {
		t.Fatal(err)
	}
	last, count := uint64(0), 0
	for line := range strings.Lines(string(text)) {
		token, err := strconv.ParseUint(strings.TrimSpace(line), 10, 64)
		if err != nil || token <= last {
			t.Errorf("token %q after %d (%v), want a larger one", line, last, err)
		}
		last = token
		count++
	}
	if count != 2*rounds {
		t.Errorf("%d turns, want %d", count, 2*rounds)
	}
}

// The acceptance test of an old lock: two processes draw IDs from one file, read,
// add one, write. Under the lock no ID is drawn twice. Without it both read before
// either writes: there the test makes them wait for each other.
func TestDrawingIDs(t *testing.T) {
	t.Parallel() // it mostly waits
	const times = 10
	servers := redistest.StartN(t, 5)
	const read, write = `id=$(cat "$DIR/next") && echo "$id" >> "$DIR/drawn.$ME"`, `echo $((id + 1)) > "$DIR/next"`
	const meet = `touch "$DIR/read.$ME" && until [ -e "$DIR/read.0" ] && [ -e "$DIR/read.1" ]; do sleep 0.01; done`
	draws := func(times int, lock func(me int) string, draw string) (total, twice int) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "next"), []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for me := range 2 {
			wg.Go(func() {
				for range times {
					p := command(t, []string{"DIR=" + dir, fmt.Sprint("ME=", me), "LEASEHOLD_STORE=" + storeURL(servers, "?node_timeout=10s")},
						"run", lock(me), "--quiet", "--", "sh", "-c", draw).start(t)
					if p.code(t) != 0 {
						t.Errorf("exit code %d, want 0\n%s", p.ProcessState.ExitCode(), &p.err)
						return
					}
				}
			})
		}
		wg.Wait()
		seen := map[string]bool{}
		for me := range 2 {
			text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint("drawn.", me)))
			if err != nil {
				t.Fatal(err)
			}
			for id := range strings.Lines(string(text)) {
				if total++; seen[id] {
					twice++
				}
				seen[id] = true
			}
		}
		return total, twice
	}
	one := func(int) string { return "ids" }
	if total, twice := draws(times, one, read+" && "+write); twice != 0 || total != 2*times {
		t.Errorf("with the lock: %d IDs drawn, %d of them twice, want %d and none", total, twice, 2*times)
	}
	// The same processes, each under a lock of its own: which is no lock.
	own := func(me int) string { return fmt.Sprint("ids/", me) }
	if total, twice := draws(1, own, read+" && "+meet+" && "+write); twice != 1 {
		t.Errorf("without the lock: %d IDs drawn, %d of them twice, want one: else this test shows nothing", total, twice)
	}
}

// Three of five servers freeze under a holder. The command gets SIGTERM, then SIGKILL,
// and run has ended with 123 before the TTL is over; only then can another
// process have the lock.
func TestMajorityFrozenUnderAHolder(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 5)
	dir := t.TempDir()
	env := []string{"DIR=" + dir, "LEASEHOLD_STORE=" + storeURL(servers, "?node_timeout=1s")}
	// It records the SIGTERM, and does not end.
	const stubborn = `trap 'touch "$DIR/told"' TERM; touch "$DIR/up"; while :; do sleep 0.05; done`
	const ttl = 12 * time.Second
	holder := command(t, env, "run", "held", "--ttl", ttl.String(), "--grace", "2s", "--", "sh", "-c", stubborn).start(t)
	eventually.True(t, "the command runs", func() bool { return exists(filepath.Join(dir, "up")) })
	for _, s := range servers[1:4] {
		if err := s.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	frozen := time.Now()
	other := command(t, env, "run", "held", "--ttl", ttl.String(), "--", "sh", "-c", `touch "$DIR/second"`)
	code := holder.code(t)
	took := time.Since(frozen)
	if code != 123 {
		t.Errorf("exit code %d, want 123\n%s", code, &holder.err)
	}
	if !exists(filepath.Join(dir, "told")) {
		t.Error("the command got no SIGTERM before it was killed, want one")
	}
	// The last renewal that can have succeeded left before the freeze. The
	// command is gone by then; run itself waits a little for silent servers.
	if took >= ttl+5*time.Second {
		t.Errorf("run ended %v after the freeze, want less than 5s more than the TTL of %v", took, ttl)
	}
	if !strings.Contains(holder.err.String(), "lost") {
		t.Errorf("stderr %s, want text with %q", &holder.err, "lost")
	}
	for _, s := range servers[1:4] {
		if err := s.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	if code := other.start(t).code(t); code != 0 || !exists(filepath.Join(dir, "second")) {
		t.Errorf("the next run: exit code %d, want 0, and a run of its command\n%s", code, &other.err)
	}
}

// While a holder has the lock, no other gets it, however long the work takes compared to
// the TTL; when it is killed outright, the next one gets in after the TTL.
func TestHolderKilledOutright(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 3)
	dir := t.TempDir()
	env := []string{"DIR=" + dir, "LEASEHOLD_STORE=" + storeURL(servers, "?node_timeout=1s&connect_timeout=20s")}
	holder := command(t, env, "run", "held", "--ttl", "4s", "--", "sh", "-c", `touch "$DIR/up"; exec sleep 600`).start(t)
	eventually.True(t, "the command runs", func() bool { return exists(filepath.Join(dir, "up")) })
	busy := command(t, env, "run", "held", "--wait", "8s", "--", "true").start(t)
	if code := busy.code(t); code != 124 || !strings.Contains(busy.err.String(), "held") {
		t.Errorf("while it is held, for two TTLs: exit code %d\n%s, want exit code %d and text with %q", code, &busy.err, 124, "held")
	}
	if err := holder.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := command(t, env, "run", "held", "--wait", "60s", "--", "true").start(t).code(t); code != 0 {
		t.Errorf("after its holder was killed: exit code %d, want exit code %d", code, 0)
	}
}

// If run is interrupted while it waits, it ends at once and leaves no key.
func TestInterruptedWait(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 5)
	dir := t.TempDir()
	env := []string{"DIR=" + dir, "LEASEHOLD_STORE=" + storeURL(servers, patiently)}
	holder := command(t, env, "run", "held", "--", "sh", "-c", `touch "$DIR/up"; exec sleep 600`).start(t)
	eventually.True(t, "the command runs", func() bool { return exists(filepath.Join(dir, "up")) })
	for sig, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		trace := filepath.Join(dir, sig.String())
		p := command(t, env, "run", "held", "--", "true")
		f, err := os.Create(trace)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		p.Stderr = f
		p.start(t)
		eventually.True(t, "it says that it waits", func() bool {
			text, _ := os.ReadFile(trace)
			return len(text) > 0
		})
		p.Process.Signal(sig)
		if code := p.code(t); code != want {
			t.Errorf("%v while waiting: exit code %d, want %d", sig, code, want)
		}
	}
	holder.Process.Signal(syscall.SIGTERM)
	if code := holder.code(t); code != 143 {
		t.Errorf("TERM while running: exit code %d, want 143\n%s", code, &holder.err)
	}
	eventually.True(t, "no key is left", func() bool {
		for _, s := range servers {
			if !s.Deleted(t, "held") {
				return false
			}
		}
		return true
	})
}

// If the store is in trouble, run names the node, ends with 125, and does not start the
// command.
func TestTroubleEndsWith125(t *testing.T) {
	t.Parallel() // it mostly waits
	const secret = "s3cr3t-pass"
	up := redistest.Start(t)
	locked := redistest.Start(t, "--requirepass", "another")
	full := redistest.Start(t, "--maxmemory", "1mb", "--maxmemory-policy", "noeviction")
	full.Text(t, "SETRANGE", "ballast", "2000000", "x")
	up.Text(t, "LPUSH", "a-list", "x")
	down := redistest.Start(t)
	down.Kill()
	for name, c := range map[string]struct{ store, lock, say string }{
		"Down":          {"redis://" + down.Addr(), "x", down.Addr()},
		"WrongPassword": {"redis://:" + secret + "@" + locked.Addr(), "x", "WRONGPASS"},
		"NoPassword":    {"redis://" + locked.Addr(), "x", "NOAUTH"},
		"OutOfMemory":   {"redis://" + full.Addr(), "x", "memory"},
		"WrongType":     {"redis://" + up.Addr(), "a-list", "not a lock"},
		"EmptyName":     {"redis://" + up.Addr(), "", "empty"},
		"LongName":      {"redis://" + up.Addr(), strings.Repeat("n", 1025), "1024"},
		"UnknownScheme": {"carrier-pigeon://coop", "x", "carrier-pigeon"},
		"TTLTooLong":    {"redis://" + up.Addr() + "?max_ttl=10s", "x", "10s"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := command(t, []string{"DIR=" + dir, "LEASEHOLD_STORE=" + c.store}, "run", c.lock, "--", "sh", "-c", `touch "$DIR/ran"`).start(t)
			code := p.code(t)
			if text := p.err.String(); code != 125 || !strings.Contains(text, c.say) || strings.Contains(text, secret) {
				t.Errorf("exit code %d, want 125 and a message with %q and no secret:\n%s", code, c.say, text)
			}
			if exists(filepath.Join(dir, "ran")) || p.out.Len() > 0 {
				t.Error("the command was run, want it not to be")
			}
		})
	}
	for _, key := range up.Keys(t) {
		if key != "a-list" {
			t.Errorf("key %q is left, want only a-list", key)
		}
	}
}

// With two of five servers silent, run works with the other three.
func TestRunWithTwoSilentServers(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := redistest.StartN(t, 5)
	for _, s := range servers[:2] {
		if err := s.Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	p := command(t, []string{"LEASEHOLD_STORE=" + storeURL(servers, "?node_timeout=3s&connect_timeout=5s")}, "run", "x", "--", "echo", "fine").start(t)
	if code := p.code(t); code != 0 || p.out.String() != "fine\n" {
		t.Errorf("exit code %d, stdout %q\n%s, want exit code %d and %q", code, &p.out, &p.err, 0, "fine\n")
	}
	show := command(t, []string{"LEASEHOLD_STORE=" + storeURL(servers, "?node_timeout=3s&connect_timeout=5s")}, "show", "x", "--json").start(t)
	if code := show.code(t); code != 0 || !strings.Contains(show.out.String(), `"held"`) {
		t.Errorf("show: exit code %d\n%s%s, want exit code %d and text with %q", code, &show.out, &show.err, 0, `"held"`)
	}
}
