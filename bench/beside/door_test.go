package beside

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
	"github.com/leasehold-dev/leasehold/internal/testenv/port"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
)

// build returns the path of the command, which is in another workspace.
func build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leasehold")
	cmd := exec.Command("go", "build", "-o", path, ".")
	cmd.Dir = "../../cmd/leasehold"
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// door is the Redis door of a server of a store, in a process of its own.
type door struct {
	t       testing.TB
	binary  string
	store   string
	address string
	process *child.Process
}

func openDoor(t testing.TB, binary, storeURL string) *door {
	t.Helper()
	n, err := port.Pick()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { port.Release(n) })
	d := &door{t: t, binary: binary, store: storeURL, address: "127.0.0.1:" + strconv.Itoa(n)}
	d.start()
	t.Cleanup(func() { d.process.Kill() })
	return d
}

// start starts the server, and waits until it listens.
func (d *door) start() {
	d.t.Helper()
	cmd := exec.Command(d.binary, "serve", "--store", d.store, "--listen", "127.0.0.1:0", "--redis", d.address)
	cmd.Stderr = &strings.Builder{}
	p, err := child.Start(cmd)
	if err != nil {
		d.t.Fatal(err)
	}
	d.process = p
	for {
		if nc, err := net.Dial("tcp", d.address); err == nil {
			nc.Close()
			return
		}
		select {
		case <-p.Done():
			d.t.Fatalf("the server ended: %v: %s", p.Err(), cmd.Stderr)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (d *door) goredis() *goredis.Client {
	c := goredis.NewClient(&goredis.Options{Addr: d.address})
	d.t.Cleanup(func() { c.Close() })
	return c
}

func (d *door) rueidislock(validity time.Duration) rueidislock.Locker {
	d.t.Helper()
	l, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{d.address}, ForceSingleClient: true, DisableCache: true},
		KeyPrefix:    "job-lock", KeyMajority: 1, KeyValidity: validity, TryNextAfter: time.Second,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(l.Close)
	return l
}

// key is the one of rueidislock's and ShedLock's lock "stock".
const key = "job-lock:0:stock"

// TestLibrariesOverTheDoor checks what each library offers, as it is.
func TestLibrariesOverTheDoor(t *testing.T) {
	d := openDoor(t, build(t), "memory:")
	c := d.goredis()
	t.Run("redsync", func(t *testing.T) {
		a := redsync.New(pool.NewPool(c)).NewMutex("redsync", redsync.WithExpiry(time.Minute), redsync.WithSetNXOnExtend())
		b := redsync.New(pool.NewPool(c)).NewMutex("redsync", redsync.WithExpiry(time.Minute), redsync.WithTries(1))
		if err := a.Lock(); err != nil {
			t.Fatal(err)
		}
		if err := b.Lock(); err == nil {
			t.Error("two holders")
		}
		//lint:ignore SA1019 programs still send this script
		if held, err := a.Valid(); !held || err != nil {
			t.Errorf("the holder: %v, %v", held, err)
		}
		if done, err := a.Extend(); !done || err != nil {
			t.Errorf("extended: %v, %v", done, err)
		}
		if done, err := b.Unlock(); done || err == nil {
			t.Errorf("unlocked by another: %v, %v", done, err)
		}
		if done, err := a.Unlock(); !done || err != nil {
			t.Errorf("unlocked: %v, %v", done, err)
		}
		if _, err := a.Unlock(); !errors.Is(err, redsync.ErrLockAlreadyExpired) {
			t.Errorf("unlocked again: %v", err)
		}
		if done, err := a.Extend(); !done || err != nil {
			t.Errorf("taken by extending: %v, %v", done, err)
		}
	})
	t.Run("redislock", func(t *testing.T) {
		ctx := t.Context()
		a, err := redislock.Obtain(ctx, c, "redislock", time.Minute, &redislock.Options{Metadata: "some words"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := redislock.Obtain(ctx, c, "redislock", time.Minute, nil); !errors.Is(err, redislock.ErrNotObtained) {
			t.Errorf("a second holder: %v", err)
		}
		if _, err := redislock.Obtain(ctx, c, "redislock", time.Minute, &redislock.Options{Token: a.Token(), Metadata: a.Metadata()}); err != nil {
			t.Errorf("obtained again: %v", err)
		}
		if err := a.Refresh(ctx, 2*time.Minute, nil); err != nil {
			t.Errorf("refreshed: %v", err)
		}
		if left, err := a.TTL(ctx); err != nil || left < time.Minute {
			t.Errorf("TTL: %v, %v", left, err)
		}
		if err := a.Release(ctx); err != nil {
			t.Errorf("released: %v", err)
		}
		if err := a.Release(ctx); !errors.Is(err, redislock.ErrLockNotHeld) {
			t.Errorf("released again: %v", err)
		}
	})
	t.Run("rueidislock", func(t *testing.T) {
		l := d.rueidislock(time.Second)
		ctx, release, err := l.WithContext(t.Context(), "stock")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := d.rueidislock(time.Second).TryWithContext(t.Context(), "stock"); !errors.Is(err, rueidislock.ErrNotLocked) {
			t.Errorf("a second holder: %v", err)
		}
		select { // it extends the lock every half of its validity
		case <-ctx.Done():
			t.Error("the lock was lost")
		case <-time.After(2500 * time.Millisecond):
		}
		release()
		if n, err := c.Exists(t.Context(), key).Result(); n != 0 || err != nil {
			t.Errorf("after the release: %v, %v", n, err)
		}
	})
	t.Run("redis-py", func(t *testing.T) {
		path, err := python()
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(path, "-c", `
import redis, sys, threading, time
host, port = sys.argv[1].split(":")
r = redis.Redis(host=host, port=int(port))
a, b = r.lock("py", timeout=60, thread_local=False), r.lock("py", timeout=60)
assert a.acquire(blocking=False) and not b.acquire(blocking=False)
assert a.locked() and a.owned() and not b.owned()
a.extend(30)
assert 60000 < r.pttl("py") <= 90000
a.extend(100, replace_ttl=True)
assert 90000 < r.pttl("py") <= 100000
try:
    a.reacquire()
    assert False, "shortened"
except redis.ResponseError as e:
    assert "never shortens" in str(e), e
c = r.lock("py4", timeout=60)
c.acquire(blocking=False)
c.reacquire()
assert c.owned()
c.release()
waiter = r.lock("py", timeout=5, sleep=0.01)
thread = threading.Thread(target=lambda: (time.sleep(0.2), a.release()))
try:
    r.lock("py2").acquire(blocking=False)
    assert False, "a lock without an end"
except redis.ResponseError as e:
    assert "for ever" in str(e), e
try:
    r.delete("py")
    assert False, "deleted"
except redis.ResponseError as e:
    assert "leasehold serve" in str(e), e
pipe = r.pipeline(transaction=True)
pipe.set("py3", "v", nx=True, px=60000)
try:
    pipe.execute()
    assert False, "a transaction"
except redis.RedisError:
    pass
assert r.get("py3") is None
try:
    b.release()
    assert False
except redis.exceptions.LockError:
    pass
thread.start()
with waiter: # waits until a is released
    assert waiter.owned() and not waiter.acquire(blocking=False)
thread.join()
assert not b.locked()
`, d.address).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
}

// pythons are the programs that may have the package redis: the system's package is the system
// Python's.
var pythons = []string{"python3", "/usr/bin/python3"}

// python returns the path of a Python with the package redis.
func python() (string, error) {
	for _, path := range pythons {
		if exec.Command(path, "-c", "import redis").Run() == nil {
			return path, nil
		}
	}
	return "", errors.New("no python3 has the package redis: install python3-redis, or run scripts/ensure-languages.sh")
}

// guest is a program in another language that takes turns at a lock with a library of its own.
type guest struct {
	name    string
	command []string // before the arguments that all guests have
	more    []string // behind them
}

// guests returns those whose libraries are installed: redis-py, and what "make doors" installs
// into the folder that the environment names.
func guests(t *testing.T) []guest {
	t.Helper()
	path, err := python()
	if err != nil {
		t.Fatal(err)
	}
	all := []guest{{"redis-py", []string{path, "testdata/door/turns.py"}, nil}}
	dir := os.Getenv("LEASEHOLD_DOOR_CLIENTS")
	if dir == "" {
		return all
	}
	join := func(has *exec.Cmd, g guest) {
		if err := has.Run(); err != nil {
			t.Logf("%s is not installed: %v", g.name, err)
			return
		}
		all = append(all, g)
	}
	for name, version := range map[string]string{"node-redlock 5": "redlock", "node-redlock 4": "redlock4"} {
		join(exec.Command("node", "-p", "require.resolve(process.argv[1])", dir+"/node_modules/"+version),
			guest{name, []string{"node", "testdata/door/turns.cjs"}, []string{version}})
	}
	join(exec.Command("ls", dir+"/shedlock"), guest{"ShedLock", []string{"java", "-cp", dir + "/shedlock/*", "testdata/door/Turns.java"}, nil})
	join(exec.Command("php", "-r", `require 'Illuminate/Redis/autoload.php'; new Redis();`), guest{"Laravel", []string{"php", "testdata/door/turns.php"}, nil})
	return all
}

// room is what a lock protects: at most one holder is in it.
type room struct {
	path string

	mu    sync.Mutex
	turns map[string]int
	wrong []error
}

// brief is how old a request may be when its holder enters the room: well under the TTL.
const (
	doorTTL = time.Second
	brief   = doorTTL / 4
)

// enter is what a holder does whose lock was asked for at a time.
func (r *room) enter(who string, asked time.Time) {
	if time.Since(asked) > brief { // the machine is slow
		return
	}
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.Close()
		time.Sleep(2 * time.Millisecond)
		err = os.Remove(r.path)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[who]++; err != nil {
		r.wrong = append(r.wrong, fmt.Errorf("%s: %w", who, err))
	}
}

// TestTheDoorIsKilled has the libraries and "leasehold run" take turns at one lock while the server
// of the door is killed again and again. No two of them hold the lock at a time.
func TestTheDoorIsKilled(t *testing.T) {
	binary := build(t)
	t.Run("files", func(t *testing.T) { takeTurns(t, binary, "file:"+t.TempDir()) })
	t.Run("PostgreSQL", func(t *testing.T) {
		s, err := sqltest.LaunchPostgreSQL()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		url := fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", s.User, s.Password, s.Addr)
		if out, err := exec.Command(binary, "schema", "--store", url).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		takeTurns(t, binary, url)
	})
}

func takeTurns(t *testing.T, binary, storeURL string) {
	d := openDoor(t, binary, storeURL)
	r := &room{path: filepath.Join(t.TempDir(), "inside"), turns: map[string]int{}}
	goredis.SetLogger(silent{})
	c := d.goredis()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	ours := []string{"redsync", "redislock", "rueidislock", "SET NX", "leasehold run"}
	names := slices.Clone(ours) // and those of guests
	join := func(who string, turn func(ctx context.Context)) {
		all.Go(func() {
			for ctx.Err() == nil {
				turn(ctx)
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	join(ours[0], func(ctx context.Context) {
		m := redsync.New(pool.NewPool(c)).NewMutex(key, redsync.WithExpiry(doorTTL), redsync.WithTries(1), redsync.WithTimeoutFactor(0.2))
		if asked := time.Now(); m.LockContext(ctx) == nil {
			r.enter(ours[0], asked)
			m.Unlock()
		}
	})
	join(ours[1], func(ctx context.Context) {
		asked := time.Now()
		if l, err := redislock.Obtain(ctx, c, key, doorTTL, nil); err == nil {
			r.enter(ours[1], asked)
			l.Release(context.Background())
		}
	})
	locker := d.rueidislock(doorTTL)
	join(ours[2], func(ctx context.Context) {
		asked := time.Now()
		if _, release, err := locker.TryWithContext(ctx, "stock"); err == nil {
			r.enter(ours[2], asked)
			release()
		}
	})
	join(ours[3], func(ctx context.Context) { // all with the same value
		asked := time.Now()
		if got, err := c.SetNX(ctx, key, "v", doorTTL).Result(); got && err == nil {
			r.enter(ours[3], asked)
			c.Do(context.Background(), "DELIFEQ", key, "v")
		}
	})
	strangers := guests(t)
	host, port, _ := net.SplitHostPort(d.address)
	counts := map[string]string{} // the file of a guest that has as many bytes as it had turns
	for i, g := range strangers {
		names = append(names, g.name)
		counts[g.name] = fmt.Sprint(r.path, ".", i)
		args := append(slices.Clone(g.command[1:]), host, port, key, ms(doorTTL), ms(brief), r.path, counts[g.name])
		all.Go(func() {
			if out, err := exec.CommandContext(t.Context(), g.command[0], append(args, g.more...)...).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", g.name, err, out)
			}
		})
	}
	join(ours[4], func(ctx context.Context) {
		cmd := exec.Command(d.binary, "run", "--store", d.store, "--ttl", doorTTL.String(), key, "--", "sh", "-c",
			`set -C; : > "$0" && sleep 0.002 && rm "$0" || exit 3`, r.path)
		out, err := cmd.CombinedOutput()
		r.mu.Lock()
		defer r.mu.Unlock()
		if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 3 {
			r.wrong = append(r.wrong, fmt.Errorf("leasehold run: %w: %s", err, out))
		} else if err == nil {
			r.turns[ours[4]]++
		}
	})

	missing := func() []string {
		r.mu.Lock()
		defer r.mu.Unlock()
		for name, path := range counts {
			if b, err := os.ReadFile(path); err == nil {
				r.turns[name] = len(b)
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
		}
		return slices.DeleteFunc(slices.Clone(names), func(who string) bool { return r.turns[who] > 0 })
	}
	begin, kills := time.Now(), 0
	for time.Since(begin) < 6*time.Second || len(missing()) > 0 && time.Since(begin) < time.Minute {
		time.Sleep(1500 * time.Millisecond)
		d.process.Kill()
		d.start()
		kills++
	}
	none := missing()
	stop()
	if err := os.WriteFile(r.path+".stop", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if len(none) > 0 {
		t.Errorf("%v had no turn in %v", none, time.Since(begin))
	}
	for _, err := range r.wrong {
		t.Error(err)
	}
	t.Logf("%d kills, turns: %v", kills, r.turns)
}

// TestManyHoldersWhileTheDoorIsKilled kills the server while 200 clients hold locks and 100 others
// ask for half of them again and again, and once more while these change hands. The holders keep
// their locks, and no lock has two.
func TestManyHoldersWhileTheDoorIsKilled(t *testing.T) {
	const holders, waiters = 200, 100
	d := openDoor(t, build(t), "file:"+t.TempDir())
	goredis.SetLogger(silent{})
	c := d.goredis()
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	// insist repeats a command while the server is away.
	insist := func(f func() error) error {
		for {
			err := f()
			if err == nil || errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) || ctx.Err() != nil {
				return err
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	var inside [holders]atomic.Int32
	enter := func(i int, who string) {
		if n := inside[i].Add(1); n != 1 {
			t.Errorf("lock%d has %d holders: %s", i, n, who)
		}
	}
	var held, asked, done sync.WaitGroup
	held.Add(holders)
	asked.Add(waiters)
	killed := make(chan struct{})
	var turns atomic.Int64
	for i := range holders {
		done.Go(func() {
			l, err := redislock.Obtain(ctx, c, "lock"+strconv.Itoa(i), time.Minute, nil)
			if err == nil {
				enter(i, "the first")
			}
			held.Done()
			if err != nil {
				t.Errorf("lock%d: %v", i, err)
				return
			}
			<-killed
			if err := insist(func() error { return l.Refresh(ctx, time.Minute, nil) }); err != nil {
				t.Errorf("lock%d is lost: %v", i, err)
			}
			inside[i].Add(-1)
			// A release whose answer was lost is not held any more.
			if err := insist(func() error { return l.Release(ctx) }); err != nil && !errors.Is(err, redislock.ErrLockNotHeld) {
				t.Errorf("lock%d is not released: %v", i, err)
			}
		})
	}
	for i := range waiters {
		done.Go(func() {
			held.Wait()
			var once sync.Once
			for ctx.Err() == nil {
				l, err := redislock.Obtain(ctx, c, "lock"+strconv.Itoa(i), 2*time.Second, nil)
				once.Do(asked.Done)
				if err == nil {
					enter(i, "a waiter")
					inside[i].Add(-1)
					turns.Add(1)
					l.Release(ctx)
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("the waiter for lock%d waited in vain", i)
		})
	}
	asked.Wait()
	d.process.Kill()
	d.start()
	close(killed)
	for turns.Load() < waiters/4 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	d.process.Kill()
	d.start()
	done.Wait()
}

// ms writes a duration as milliseconds.
func ms(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
