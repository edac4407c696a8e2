package contend

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/bench/locks"
	"github.com/leasehold-dev/leasehold/bench/resp"
	"github.com/leasehold-dev/leasehold/internal/lab/load"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// noLock is a lock that is always granted, so it excludes nothing.
var noLock = locks.Kind{Name: "no-lock", Label: "no lock at all", Role: locks.Peer, Engine: locks.Redis, Nodes: 1, Open: func(context.Context, []string) (locks.Client, error) {
	return granting{}, nil
}}

type granting struct{}

func (granting) Pair(string) load.Pair        { return granting{} }
func (granting) Close()                       {}
func (granting) Lock(context.Context) error   { return nil }
func (granting) Unlock(context.Context) error { return nil }

const orphansArg = "orphans"

// The workers, and the parent that is killed before them, are processes of this test binary.
func TestMain(m *testing.M) {
	locks.Contended = append(locks.Contended, noLock)
	if len(os.Args) == 2 {
		var err error
		switch os.Args[1] {
		case Arg:
			err = Main(os.Stdin, os.Stdout)
		case orphansArg:
			err = orphans()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serviceOf starts the servers of a kind.
func serviceOf(t *testing.T, name string) Service {
	t.Helper()
	k, ok := locks.ContendedNamed(name)
	if !ok || k.Engine != locks.Redis {
		t.Fatalf("no implementation %q on Redis", name)
	}
	var addrs []string
	for _, s := range redistest.StartN(t, k.Nodes) {
		addrs = append(addrs, s.Addr())
	}
	return Service{Kind: k, Addrs: addrs, Redis: addrs}
}

// contestOf returns a contest that is long enough for a turn: on a loaded machine some wait
// for 400 ms.
func contestOf(t *testing.T, name string, processes int) Contest {
	return Contest{Service: serviceOf(t, name), Lock: "a", Processes: processes, Goroutines: 1, Warm: 100 * time.Millisecond, For: 1500 * time.Millisecond}
}

// Every implementation on Redis excludes, and the commands counted for its clients are
// those that a monitored server saw.
func TestContests(t *testing.T) {
	for _, k := range locks.Contended {
		if k.Engine != locks.Redis || k.Name == noLock.Name {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			c := contestOf(t, k.Name, 3)
			seen := monitor(t, c.Redis[0])
			before, err := c.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			f, err := c.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, addr := range c.Redis {
				awaitDepartures(t, addr)
			}
			after, err := c.read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if f.Overlaps > 0 || f.Errors > 0 || f.Turns == 0 || f.Processes != 3 || f.Goroutines != 1 {
				t.Errorf("%+v, want turns of 3 processes of one goroutine, and no overlaps or errors", f)
			}
			if f.ClientCPU <= 0 || f.ServerCPU <= 0 || f.Sent <= 0 || f.Commands < f.Sent {
				t.Errorf("%+v, want CPU times, and commands that the clients have sent", f.Use)
			}
			s := seen()
			uncounted := 0
			for command, n := range s.sent {
				switch {
				case slices.Contains(k.Uncounted, command):
					uncounted += n
				case !counted(k, command):
					t.Errorf("clients send %q, want only commands that are counted", command)
				}
			}
			// On a loaded machine, what each process sends when it connects is more than that.
			const connecting = 4
			if uncounted > max(s.total()/100, connecting*c.Processes) {
				t.Errorf("%d of %d commands of clients are not counted, want 1 %% at most, or %d a process: %v", uncounted, s.total(), connecting, s.sent)
			}
			for command := range s.called {
				if counted(k, command) {
					t.Errorf("scripts call %q, want no command that is counted as sent by clients", command)
				}
			}
			sent := after.sent + after.kept - before.sent - before.kept
			if n := uint64(s.total() - uncounted); k.Nodes == 1 && n != sent {
				t.Errorf("%d commands were counted, want the %d that the server reported: %v", sent, n, s.sent)
			}
		})
	}
}

func counted(k locks.Kind, command string) bool {
	return command == keepAlive || slices.Contains(neverInScripts, command) || slices.Contains(k.Sends, command)
}

// seen has the commands that a server executed, sent by clients or called by scripts.
type seen struct{ sent, called map[string]int }

func (s seen) total() (n int) {
	for c := range maps.Values(s.sent) {
		n += c
	}
	return n
}

// monitor makes a server report every command until the returned function is called.
func monitor(t *testing.T, addr string) func() seen {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20) // a line can have the text of a script
	if _, err := conn.Write(resp.AppendCommand(nil, "MONITOR")); err != nil || !lines.Scan() {
		t.Fatalf("MONITOR: %v", err)
	}
	const last = "end of the commands"
	s := seen{map[string]int{}, map[string]int{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			// +1700000000.000000 [0 lua] "get" "a"
			_, rest, _ := strings.Cut(lines.Text(), "[")
			from, command, _ := strings.Cut(rest, "] ")
			name, _, _ := strings.Cut(strings.TrimPrefix(command, `"`), `"`)
			name = strings.ToLower(name)
			switch {
			case strings.Contains(command, last):
				return
			case name == "info": // of this test
			case strings.HasSuffix(from, " lua"):
				s.called[name]++
			default:
				s.sent[name]++
			}
		}
	}()
	return func() seen {
		t.Helper()
		if _, err := resp.Ask(addr, "ECHO", last); err != nil {
			t.Fatal(err)
		}
		<-done
		return s
	}
}

// awaitDepartures waits until a server has read everything that closed clients sent:
// until only this client and a monitor are connected.
func awaitDepartures(t *testing.T, addr string) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		info, err := resp.Ask(addr, "INFO", "clients")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(info, "connected_clients:")
		n, err := strconv.Atoi(strings.TrimSpace(after[:strings.IndexByte(after, '\n')]))
		if err != nil {
			t.Fatal(err)
		}
		if n <= 2 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%d clients are still connected after a minute, want 2", n)
		}
	}
}

// A lock that does not exclude is detected, from the clocks of the processes to the
// figures.
func TestOverlapOfProcesses(t *testing.T) {
	c := contestOf(t, noLock.Name, 3)
	c.Hold = time.Millisecond
	f, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f.Overlaps == 0 || f.Overlap == "" || f.Turns < 3 {
		t.Errorf("%+v, want overlaps and 3 turns at least", f)
	}
}

// A lock that is kept during a contest gives no turns, and is released at its end.
func TestKept(t *testing.T) {
	c := contestOf(t, "leasehold-1", 2)
	c.Goroutines, c.Kept = 3, true
	for range 2 { // the second run shows that the first has released it
		f, err := c.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if f.Turns != 0 || f.Overlaps != 0 || f.Starved != 2 || f.Goroutines != 3 || f.Wait.Max < c.For || f.Errors != 0 {
			t.Errorf("%+v, want no turns, and waits as long as the contest", f)
		}
	}
}

func TestFirst(t *testing.T) {
	s := serviceOf(t, "leasehold-1")
	for i, fate := range Fates {
		took, err := s.First(t.Context(), "a"+strconv.Itoa(i), fate, time.Second)
		if err != nil || took <= 0 {
			t.Errorf("%s: %v, %v, want a positive time", fate, took, err)
		}
	}
	s.Kind.Role = locks.Peer
	if _, err := s.First(t.Context(), "a", Alive, time.Second); err == nil {
		t.Error("First of a peer: no error, want one: it has no queue")
	}
}

func TestFarAway(t *testing.T) {
	s := redistest.Start(t)
	const far = 30 * time.Millisecond
	f, err := MoveAway([]string{s.Addr()}, far)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if took, err := RoundTrip(f.Addrs()[0]); err != nil || took < far {
		t.Errorf("the round trip took %v, %v, want %v at least", took, err, far)
	}
}

func TestTrouble(t *testing.T) {
	k, _ := locks.ContendedNamed("leasehold-1")
	nowhere := Service{Kind: k, Addrs: []string{"127.0.0.1:1"}, Redis: []string{"127.0.0.1:1"}}
	if f, err := (Contest{Service: nowhere, Lock: "a", Processes: 2}).Run(t.Context()); err == nil {
		t.Errorf("without servers: %+v, want an error", f)
	}
	if _, err := Start(t.Context(), []Spec{{Do: Loop, Kind: "nothing"}}); err == nil {
		t.Error("an unknown implementation: no error, want one")
	}
	var r reading
	if err := r.add("used_cpu_user:1.5\r\n", nil); err == nil {
		t.Error("an INFO without all figures: no error, want one")
	}
}

func TestReading(t *testing.T) {
	info := "used_cpu_user:1.5\r\nused_cpu_sys:0.5\r\ntotal_commands_processed:1000\r\n" +
		"cmdstat_evalsha:calls=10,usec=1,usec_per_call=1\r\ncmdstat_client|setinfo:calls=3,usec=1\r\ncmdstat_ping:calls=7,usec=1\r\ncmdstat_set:calls=20,usec=1\r\ncmdstat_get:calls=40,usec=1\r\n"
	for _, c := range []struct {
		sends []string
		want  uint64
	}{{nil, 13}, {[]string{"set"}, 33}} {
		var r reading
		if err := r.add(info, c.sends); err != nil || r.sent != c.want || r.kept != 7 || r.commands != 1000 || r.cpu != 2*time.Second {
			t.Errorf("%v: %+v, %v, want %d sent, 7 kept, 1000 commands and 2s", c.sends, r, err, c.want)
		}
	}
	before := reading{at: 0, cpu: time.Second, sent: 100, commands: 200, own: 2}
	after := reading{at: 2000, cpu: 3 * time.Second, sent: 300, kept: 20, commands: 602, own: 2}
	if u := after.since(before, 1000); u.ServerCPU != time.Second || u.Sent != 100 || u.KeptAlive != 10 || u.Commands != 200 {
		t.Errorf("half of what was used is %+v, want 1s, 100 sent, 10 kept alive and 200 commands", u)
	}
}

// orphans starts workers, one of them frozen, prints their ids, and waits to be killed.
func orphans() error {
	spec := Spec{Do: Loop, Kind: noLock.Name}
	f, err := Start(context.Background(), []Spec{spec, spec})
	if err != nil {
		return err
	}
	if err := f[1].Freeze(); err != nil {
		return err
	}
	fmt.Println(f[0].cmd.Process.Pid, f[1].cmd.Process.Pid)
	select {}
}

// Workers end when their parent does, however it ends and whatever they do.
func TestNoOrphans(t *testing.T) {
	parent := exec.Command(os.Args[0], orphansArg)
	parent.Stderr = os.Stderr
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	end := sync.OnceFunc(func() {
		parent.Process.Kill()
		parent.Wait()
	})
	defer end()
	var pids [2]int
	if _, err := fmt.Fscan(out, &pids[0], &pids[1]); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if !runs(pid) {
			t.Fatalf("worker %d has ended before its parent, want it to run", pid)
		}
	}
	end()
	for _, pid := range pids {
		for limit := time.Now().Add(time.Minute); runs(pid); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("worker %d runs a minute after the end of its parent, want it to end", pid)
			}
		}
	}
}

// runs reports whether the process exists and is not a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := string(stat[strings.LastIndexByte(string(stat), ')')+1:])
	state := strings.Fields(rest)[0]
	return state != "Z" && state != "X"
}
