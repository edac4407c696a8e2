package servers

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold"
	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/store/redisstore"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == SpinArg {
		if err := Spin(); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestRedis(t *testing.T) {
	r, err := StartRedis(3)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if v, err := r.Version(); err != nil || !strings.Contains(v, ".") {
		t.Errorf("version %q, %v, want one with a dot", v, err)
	}
	if a := r.Addrs(); len(a) != 3 || a[0] == a[1] {
		t.Errorf("addresses %q, want three different ones", a)
	}
	if _, err := resp.Ask(r[1].Addr(), "SET", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if err := r.Empty(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := resp.Ask(r[1].Addr(), "EXISTS", "a"); err != nil || left != "0" {
		t.Errorf("%s keys are left, %v, want 0", left, err)
	}
	// New servers are not in quarantine.
	st, err := redisstore.Open(t.Context(), "redis://"+strings.Join(r.Addrs(), ","), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if _, err := leasehold.New(st, nil).Mutex("a").Try(t.Context()); err != nil {
		t.Error(err)
	}
	if used, err := CPU(r[0].PID()); err != nil || used < 0 {
		t.Errorf("CPU time %v, %v, want none or more", used, err)
	}
	r[1].Kill()
	if r.Empty(t.Context()) == nil {
		t.Error("emptying a killed server: no error, want one")
	}
}

func TestCPU(t *testing.T) {
	before, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; {
		now, err := CPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now > before {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the CPU time has not increased in a busy minute, want more")
		}
	}
	if _, err := CPU(-1); err == nil {
		t.Error("the CPU time of no process: no error, want one")
	}
}

// The error for a server that is not installed says what to install.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	var missing *MissingError
	if s, err := StartZooKeeper(t.Context()); !errors.As(err, &missing) || !strings.Contains(err.Error(), "apt-get install") {
		t.Errorf("%v, %v, want an error that says what to install", s, err)
	}
}

// If a server does not start, the error comes at once and has its log.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho the reason >&2\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "java"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if s, err := StartZooKeeper(t.Context()); err == nil || !strings.Contains(err.Error(), "the reason") {
		t.Errorf("%v, %v, want an error with %q", s, err, "the reason")
	}
}

func TestSpinners(t *testing.T) {
	s, err := StartSpinners()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if len(s) == 0 {
		t.Fatal("no spinners, want one at least")
	}
	for _, c := range s {
		for end := time.Now().Add(time.Minute); policy(t, c.Process.Pid) != "5"; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the spinner has no idle priority after a minute, want it")
			}
		}
	}
}

// policy returns the scheduling policy of a process, the 41st field of its stat file: that of
// its first thread that does not have the usual one, "0".
func policy(t *testing.T, pid int) string {
	t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
	if err != nil || len(tasks) == 0 {
		t.Fatalf("the spinner has no threads (%v), want one at least", err)
	}
	for _, path := range tasks {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(f) > 38 && f[38] != "0" {
			return f[38]
		}
	}
	return "0"
}
