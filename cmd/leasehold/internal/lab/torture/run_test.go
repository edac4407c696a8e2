package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/lab/history"
	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/filestore"
)

// asWorker is set in a worker process of this test program, to its kind of store.
const asWorker = "LEASEHOLD_TORTURE_WORKER"

func TestMain(m *testing.M) {
	kind := os.Getenv(asWorker)
	if kind == "" {
		os.Exit(m.Run())
	}
	if err := Work(os.Stdin, opens[kind]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var opens = map[string]Open{
	"sound": openFile,
	"liar": func(ctx context.Context, urls []string) (*store.Store, error) {
		st, err := openFile(ctx, urls)
		return store.New(&liar{Engine: st}), err
	},
	"deaf": func(ctx context.Context, urls []string) (*store.Store, error) {
		st, err := filestore.Open(ctx, urls[0], nil)
		return store.New(&deaf{st}), err
	},
	"stuck": func(ctx context.Context, urls []string) (*store.Store, error) {
		st, err := openFile(ctx, urls)
		return store.New(&stuck{Engine: st}), err
	},
	"broken": func(context.Context, []string) (*store.Store, error) { return nil, errors.New("no such store") },
	"crash": func(context.Context, []string) (*store.Store, error) {
		fmt.Fprintln(os.Stderr, "the worker crashes")
		os.Exit(3)
		return nil, nil
	},
}

func openFile(ctx context.Context, urls []string) (*store.Store, error) {
	return filestore.Open(ctx, urls[0], nil)
}

// liar sometimes grants a lock that another client holds.
type liar struct {
	store.Engine
	busy atomic.Int64
}

// Caps implements driver.Engine: without a queue, every attempt is an Acquire.
func (l *liar) Caps() store.Caps {
	c := l.Engine.Caps()
	c.NoQueue = true
	return c
}

func (l *liar) Acquire(ctx context.Context, r store.AcquireRequest) (store.Grant, error) {
	g, err := l.Engine.Acquire(ctx, r)
	if errors.Is(err, store.ErrBusy) {
		if n := l.busy.Add(1); n%5 == 0 {
			return store.Grant{Token: fence.Token(n)}, nil
		}
	}
	return g, err
}

// deaf renews any lease, also one that is over.
type deaf struct{ store.Engine }

// Caps implements driver.Engine: without a queue, every attempt is an Acquire.
func (d *deaf) Caps() store.Caps {
	c := d.Engine.Caps()
	c.NoQueue = true
	return c
}

func (d *deaf) Renew(ctx context.Context, leases []store.Lease) []error {
	d.Engine.Renew(ctx, leases)
	return make([]error, len(leases))
}

// stuck never returns from its first release.
type stuck struct {
	store.Engine
	releases atomic.Int64
}

// Caps implements driver.Engine: without a queue, every attempt is an Acquire.
func (s *stuck) Caps() store.Caps {
	c := s.Engine.Caps()
	c.NoQueue = true
	return c
}

func (s *stuck) Release(ctx context.Context, r store.ReleaseRequest) error {
	if s.releases.Add(1) == 1 {
		select {}
	}
	return s.Engine.Release(ctx, r)
}

func config(t *testing.T, kind string) Config {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Procs: 3, Locks: Names(2), TTL: 500 * time.Millisecond, For: 2 * time.Second, Seed: 1,
		Store: []string{"file:" + filepath.Join(t.TempDir(), "locks")}, Dir: filepath.Join(t.TempDir(), "out"),
		Command: func() *exec.Cmd {
			c := exec.Command(exe)
			c.Env = append(os.Environ(), asWorker+"="+kind)
			return c
		},
	}
}

func runOnce(t *testing.T, ctx context.Context, c Config) (*Report, string) {
	t.Helper()
	rep, err := Run(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	rep.Print(&printed)
	t.Log(printed.String())
	return rep, printed.String()
}

// A run of a sound store, with processes that are stopped and killed, passes.
func TestSoundStorePasses(t *testing.T) {
	c := config(t, "sound")
	disturbed := false
	c.Disturb = func(ctx context.Context, note func(on, what string) func()) {
		over := note("nothing", "looked at")
		<-ctx.Done()
		over()
		disturbed = true
	}
	var phases []string
	c.Progress = func(p Progress) {
		if len(phases) == 0 || phases[len(phases)-1] != p.Phase {
			phases = append(phases, p.Phase)
		}
	}
	rep, printed := runOnce(t, t.Context(), c)
	if !rep.OK() || rep.Granted < len(c.Locks) || !disturbed || rep.Faults != 1 {
		t.Errorf("%d violations, %d grants, disturbed: %v, faults: %d, want no violations, some grants, true and 1", len(rep.Violations), rep.Granted, disturbed, rep.Faults)
	}
	if rep.Kills+rep.Stops == 0 {
		t.Error("no process was stopped or killed, want one at least")
	}
	if last := lastLine(printed); !strings.HasPrefix(last, "PASS: 0 violations") {
		t.Errorf("the last line is %q, want %q at the beginning", last, "PASS: 0 violations")
	}
	if want := []string{"faults", "calm", "stopping", "checking"}; !slices.Equal(phases[max(0, len(phases)-4):], want) {
		t.Errorf("phases %q, want %q at the end", phases, want)
	}
	if svg, err := os.ReadFile(rep.Plot); err != nil || !bytes.Contains(svg, []byte("worker 3/2")) {
		t.Errorf("the plot: %v, want a plot with the lane of worker 3/2", err)
	}
}

// A run of a sound store with locks that several can hold passes, too.
func TestSoundKindsPass(t *testing.T) {
	together := 0
	for seed := uint64(1); together == 0 && seed <= 4; seed++ {
		c := config(t, "sound")
		c.Seed, c.Kinds, c.Locks = seed, Kinds(4), Names(4)
		rep, _ := runOnce(t, t.Context(), c)
		if !rep.OK() || rep.Granted < len(c.Locks) {
			t.Fatalf("%d violations, %d grants, want none and one of each lock", len(rep.Violations), rep.Granted)
		}
		together = heldTogether(rep.h)
	}
	if together == 0 {
		t.Error("no two held a lock together in four runs, want some: else this shows nothing")
	}
}

// heldTogether counts grants of a lock that another attempt held at that moment.
func heldTogether(h *history.History) (n int) {
	for _, a := range h.Attempts {
		if slices.ContainsFunc(h.Attempts, func(b *history.Attempt) bool {
			return b.Lock == a.Lock && b.Outcome == history.Granted && a.Outcome == history.Granted &&
				b.Answered < a.Answered && a.Answered < b.Release
		}) {
			n++
		}
	}
	return n
}

// A store that grants a held lock fails: the checks of intervals and the models find it, and
// there is a picture.
func TestLyingStoreFails(t *testing.T) {
	rep, printed := runOnce(t, t.Context(), config(t, "liar"))
	for _, check := range []string{"mutual exclusion", "lock model", "tokens", "token model", "guard"} {
		if !found(rep, check) {
			t.Errorf("the check of %s found nothing, want a violation", check)
		}
	}
	if len(rep.Pictures) == 0 {
		t.Error("no picture, want one")
	}
	if last := lastLine(printed); !strings.HasPrefix(last, "FAIL: ") || rep.OK() {
		t.Errorf("the last line is %q, want FAIL", last)
	}
}

// A guard that accepts any token fails: holders write now and then when their lease is over.
func TestOpenGuardFails(t *testing.T) {
	c := config(t, "sound")
	c.guard = func(next http.Handler) http.Handler { return next }
	if rep, _ := runOnce(t, t.Context(), c); !found(rep, "guard") {
		t.Error("the check of the guard found nothing, want a violation")
	}
}

// An operator breaks leases, and releases them by their owner, while holders work. A sound store
// passes. A store that renews what was released fails: the holder is never told.
func TestLeasesReleasedByAnOperator(t *testing.T) {
	freed := 0
	for _, kind := range []string{"sound", "deaf"} {
		missing := true
		for seed := uint64(1); missing && seed <= 20; seed++ {
			c := config(t, kind)
			c.Seed, c.Crowd, c.Locks, c.For = seed, 20, c.Locks[:1], 5*time.Second
			rep, _ := runOnce(t, t.Context(), c)
			for _, a := range rep.h.Attempts {
				if a.Freed != 0 {
					freed++
				}
			}
			if missing = kind == "sound" && freed == 0 || kind == "deaf" && !found(rep, "told"); kind == "sound" && !rep.OK() {
				t.Errorf("a sound store: %d violations, want none", len(rep.Violations))
			}
		}
		if missing {
			t.Errorf("%s: %d leases were released by their owner, want some, and that it is seen where the holder is not told", kind, freed)
		}
	}
}

// A store that grants a lock to too many fails, too, and each check of such locks finds it.
func TestLyingStoreOfKindsFails(t *testing.T) {
	missing := []string{"readers and writers", "permits", "slots", "tokens"}
	for seed := uint64(1); len(missing) > 0 && seed <= 8; seed++ {
		c := config(t, "liar")
		c.Seed, c.Kinds = seed, Kinds(3)[1:]
		rep, printed := runOnce(t, t.Context(), c)
		if !strings.HasPrefix(lastLine(printed), "FAIL: ") {
			t.Errorf("the last line is %q, want %q at the beginning", lastLine(printed), "FAIL: ")
		}
		missing = slices.DeleteFunc(missing, func(check string) bool { return found(rep, check) })
	}
	if len(missing) > 0 {
		t.Errorf("the checks of %q found nothing, want a violation of each", missing)
	}
}

// found reports whether a check has found something.
func found(rep *Report, check string) bool {
	return slices.ContainsFunc(rep.Violations, func(v history.Violation) bool { return v.Check == check })
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// A run with a worker that crashes has no verdict: what the worker did is not known.
func TestTroubleIsNoVerdict(t *testing.T) {
	_, err := Run(t.Context(), config(t, "crash"))
	if err == nil || !strings.Contains(err.Error(), "the worker crashes") {
		t.Errorf("a worker that ends by itself: %v, want an error with its words", err)
	}
	c := config(t, "sound")
	if err := os.MkdirAll(filepath.Join(c.Dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a directory with something in it: %v, want an error with %q", err, "not empty")
	}
	c = config(t, "sound")
	c.Command = func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "nothing")) }
	if _, err := Run(t.Context(), c); err == nil {
		t.Error("a program that does not exist: no error, want one")
	}
}

// A worker that does not end is a violation, and prints where it hangs.
func TestHungWorkerFails(t *testing.T) {
	c := config(t, "stuck")
	c.TTL, c.patience = 2*time.Second, time.Second
	rep, printed := runOnce(t, t.Context(), c)
	if rep.OK() || len(rep.Hung) == 0 || !strings.Contains(printed, "VIOLATION: worker ") || !strings.HasPrefix(lastLine(printed), "FAIL: ") {
		t.Errorf("workers that hang: %q, want one at least, and FAIL", rep.Hung)
	}
	logs, _ := filepath.Glob(filepath.Join(c.Dir, "*.log"))
	dumped := slices.ContainsFunc(logs, func(path string) bool {
		said, _ := os.ReadFile(path)
		return bytes.Contains(said, []byte("(*stuck).Release"))
	})
	if canStop && !dumped { // elsewhere they cannot be made to
		t.Error("no log shows where the worker hangs, want (*stuck).Release in one")
	}
}

// A run that is cut short has a verdict on what was done until then.
func TestCutShort(t *testing.T) {
	for _, kind := range []string{"sound", "broken"} {
		t.Run(kind, func(t *testing.T) {
			c := config(t, kind)
			c.For = time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c.Progress = func(p Progress) {
				if p.Granted > 3 || kind == "broken" && p.Elapsed > 500*time.Millisecond {
					cancel()
				}
			}
			rep, printed := runOnce(t, ctx, c)
			word := map[string]string{"sound": "PASS: ", "broken": "NONE: "}[kind]
			if last := lastLine(printed); !rep.CutShort || !strings.HasPrefix(last, word) || !strings.HasSuffix(last, "cut short") {
				t.Errorf("the last line is %q, want %q first and \"cut short\" last", last, word)
			}
		})
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Procs: 2, Locks: Names(1), TTL: time.Second, For: time.Second}
	caps := store.Caps{Engine: "x", Reach: "machine", MaxTTL: 10 * time.Second}
	if err := good.Check(caps); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config, *store.Caps){
		"processes is 1":      func(c *Config, _ *store.Caps) { c.Procs = 1 },
		"processes is 65":     func(c *Config, _ *store.Caps) { c.Procs = 65 },
		"locks is 0":          func(c *Config, _ *store.Caps) { c.Locks = nil },
		"duration is 0s":      func(c *Config, _ *store.Caps) { c.For = 0 },
		"TTL is 1ms":          func(c *Config, _ *store.Caps) { c.TTL = time.Millisecond },
		"maximum is 10s":      func(c *Config, _ *store.Caps) { c.TTL = 11 * time.Second },
		"2 locks and 1 kinds": func(c *Config, _ *store.Caps) { c.Locks, c.Kinds = Names(2), Kinds(1) },
		"no read-write lock":  func(c *Config, s *store.Caps) { c.Locks, c.Kinds, s.MutexesOnly = Names(2), Kinds(2), true },
		"one process only":    func(_ *Config, c *store.Caps) { c.Reach = "process" },
	} {
		c, caps := good, caps
		change(&c, &caps)
		if err := c.Check(caps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
}
