//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/leasehold-dev/leasehold/internal/testenv/built"
	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/localredis"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/internal/testenv/sqltest"
	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
)

// The scripts in testdata are sessions at a terminal. Besides the commands of testscript
// they have these:
//
//	leasehold ARGS...       runs the command, which succeeds; with "! " before, it fails
//	leasehold ARGS... &N&   starts it in the background, with the name N
//	sh -c TEXT              runs a shell in the same way
//	exit CODE               the exit code of the command that ended last
//	says N PATTERN          waits until N has written it; "! says": it has not, up to now
//	enter N [TEXT]          types a line for N
//	signal N NAME           sends a signal, such as TERM
//	ends N [CODE]           waits for the end of N; stdout and stderr are then those of N
//	finish N                types a line, and N ends with 0
//	export NAME=VALUE       sets a variable
//	capture PATTERN NAME... sets variables to the groups of a pattern in stdout
//	redis start N [ARGS]    starts N servers, which become the store; $REDIS1 is an address
//	redis kill I            kills one of them; "redis restart I" starts it again
//	redis do I COMMAND      sends a command of Redis to one of them; stdout has the reply
//	redis watched N         starts a master that N sentinels watch, which become the store;
//	                        $SENTINEL1 is an address, and "redis kill" kills sentinels
//	etcd start              starts a member of etcd; $ETCD is its address
//	etcd kill               kills it
//	refused FILE            runs each line of FILE, which is refused with exit code 125 (or
//	                        another one) and the text after "#", without a word on stdout
//
// The program "job" says that it has begun, and ends when a line is typed.
var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"leasehold": inSession(func(s *session, neg bool, args []string) { s.command(neg, s.binary, args) }),
	"sh":        inSession(func(s *session, neg bool, args []string) { s.command(neg, "/bin/sh", args) }),
	"exit":      inSession((*session).exit),
	"says":      inSession((*session).says),
	"enter":     inSession((*session).enter),
	"signal":    inSession((*session).signal),
	"ends":      inSession((*session).ends),
	"finish":    inSession((*session).finish),
	"export":    inSession((*session).export),
	"capture":   inSession((*session).capture),
	"redis":     inSession((*session).redis),
	"etcd":      inSession((*session).etcd),
	"refused":   inSession((*session).refused),
}

// job is the command under the lock.
const job = `#!/bin/sh
trap 'echo told to stop; exit 0' TERM
echo begun
read line
exit "${1:-0}"
`

// command returns the path of the command for scripts. They start hundreds of processes, which the
// race detector would make three times as slow, so they have it without.
var command = sync.OnceValues(func() (string, error) {
	if !raceDetector {
		return binary, nil
	}
	dir := filepath.Join(filepath.Dir(binary), "plain")
	return built.Command(dir)
})

// TestScripts runs the sessions on a lock folder, or on the servers that they start.
func TestScripts(t *testing.T) {
	t.Parallel()
	runScripts(t, "testdata", "file", "")
}

// databases are the stores with a schema.
var databases = []string{"postgresql", "mariadb", "mysql"}

// TestScriptsOnStores runs the sessions about what every store promises. The sessions of one store
// share its servers, so each session has lock names of its own.
func TestScriptsOnStores(t *testing.T) {
	t.Parallel()
	const longest = "max_ttl=1h"
	onRedis := func(n int) func(t *testing.T) string {
		return func(t *testing.T) string {
			return "redis://" + addresses(redistest.StartN(t, n)) + patiently + "&" + longest
		}
	}
	onDatabase := func(launch func(...string) (*sqltest.Server, error), url string) func(t *testing.T) string {
		return func(t *testing.T) string {
			server, err := launch()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			return fmt.Sprintf(url, server.User, server.Password, server.Addr)
		}
	}
	stores := map[string]func(t *testing.T) string{
		"file":       func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "locks") },
		"redis":      onRedis(1),
		"redis3":     onRedis(3),
		"postgresql": onDatabase(sqltest.LaunchPostgreSQL, "postgres://%s:%s@%s/postgres?sslmode=disable"),
		"mariadb":    onDatabase(sqltest.LaunchMariaDB, "mariadb://%s:%s@%s/?tls=false"),
		"etcd":       func(t *testing.T) string { return "etcd://" + launchEtcd(t).Endpoints()[0] + "?" + longest },
		"zookeeper": func(t *testing.T) string {
			server, err := zktest.Launch(zktest.Options{Tick: 500 * time.Millisecond, Settings: []string{"maxSessionTimeout=4000000"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Close)
			return "zookeeper://" + server.Addr
		},
		"cluster": func(t *testing.T) string {
			return "redis-cluster://" + addresses(redistest.StartCluster(t, 3, 0).Masters) + patiently + "&" + longest
		},
	}
	if sqltest.MySQL() != "" {
		stores["mysql"] = onDatabase(sqltest.LaunchMySQL, "mysql://%s:%s@%s/?tls=false")
	}
	for store, start := range stores {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			url := start(t)
			first := []string{"run", "first", "--", "true"} // makes the folder, so that each script can run alone
			if slices.Contains(databases, store) {
				first = []string{"schema"}
			}
			newSite(t, storeVar+"="+url).run(0, first...)
			runScripts(t, "testdata/stores", store, url)
		})
	}
}

func runScripts(t *testing.T, dir, store, url string) {
	path, err := command()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                dir,
		Cmds:               scriptCommands,
		RequireUniqueNames: true,
		Condition: func(cond string) (bool, error) {
			return cond == store || cond == "database" && slices.Contains(databases, store), nil
		},
		Setup: func(env *testscript.Env) error {
			bin, home := filepath.Join(env.WorkDir, ".bin"), filepath.Join(env.WorkDir, ".home")
			for _, err := range []error{os.Mkdir(bin, 0o700), os.Mkdir(home, 0o700), os.WriteFile(filepath.Join(bin, "job"), []byte(job), 0o700)} {
				if err != nil {
					return err
				}
			}
			search := strings.Join([]string{filepath.Dir(path), bin, os.Getenv("PATH")}, string(filepath.ListSeparator))
			env.Vars = append(env.Vars, "PATH="+search, "HOME="+home, "LONG="+strings.Repeat("x", 1025), "GOCOVERDIR="+os.Getenv("GOCOVERDIR"))
			if url != "" {
				env.Vars = append(env.Vars, storeVar+"="+url)
			}
			env.Values["session"] = &session{site: site{binary: path, home: home, env: slices.Clone(env.Vars)}, procs: map[string]*proc{}}
			return nil
		},
	})
}

// A session is the state of a script: the environment of its commands, those that run in the
// background, and its servers.
type session struct {
	site
	*testscript.TestScript
	code    int
	procs   map[string]*proc
	servers []*redistest.Server
	member  *etcdtest.Cluster
}

// inScript makes helpers of tests fail a script. It is a test whose ends are those of a script.
type inScript struct{ *testscript.TestScript }

func (inScript) Helper()                     {}
func (s inScript) Cleanup(f func())          { s.Defer(f) }
func (s inScript) Errorf(f string, v ...any) { s.Fatalf(f, v...) }
func (s inScript) Fatal(v ...any)            { s.Fatalf("%s", fmt.Sprint(v...)) }

// asTest is a script for what starts servers for a test.
type asTest struct {
	testing.TB
	s *testscript.TestScript
}

func (asTest) Helper()                     {}
func (asTest) Failed() bool                { return false }
func (t asTest) Cleanup(f func())          { t.s.Defer(f) }
func (t asTest) Error(v ...any)            { t.s.Fatalf("%s", fmt.Sprint(v...)) }
func (t asTest) Errorf(f string, v ...any) { t.s.Fatalf(f, v...) }
func (t asTest) Fatal(v ...any)            { t.s.Fatalf("%s", fmt.Sprint(v...)) }
func (t asTest) Fatalf(f string, v ...any) { t.s.Fatalf(f, v...) }

func (t asTest) TempDir() string {
	dir, err := os.MkdirTemp(t.s.MkAbs("."), ".server")
	t.s.Check(err)
	return dir
}

func inSession(f func(s *session, neg bool, args []string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		s := ts.Value("session").(*session)
		s.t, s.TestScript = inScript{ts}, ts
		f(s, neg, args)
	}
}

// command runs a program, or starts it if its last argument is &NAME&.
func (s *session) command(neg bool, program string, args []string) {
	s.dir = s.MkAbs(".")
	last := ""
	if len(args) > 0 {
		last = args[len(args)-1]
	}
	if name, ok := strings.CutPrefix(last, "&"); ok {
		s.procs[strings.TrimSuffix(name, "&")] = s.site.exec(program, args[:len(args)-1]...)
		return
	}
	p := s.site.exec(program, args...)
	p.in.Close()
	s.ended(p)
	if failed := s.code != 0; failed != neg {
		s.Fatalf("unexpected exit code %d", s.code)
	}
}

// ended waits for the end of a process, whose output is then what "stdout" and "stderr" look at.
func (s *session) ended(p *proc) {
	s.code = p.end()
	fmt.Fprint(s.Stdout(), p.out.String())
	fmt.Fprint(s.Stderr(), p.err.String())
}

func (s *session) exit(_ bool, args []string) {
	if args[0] != strconv.Itoa(s.code) {
		s.Fatalf("exit code %d, want %s", s.code, args[0])
	}
}

func (s *session) named(args []string) *proc {
	if len(args) == 0 || s.procs[args[0]] == nil {
		s.Fatalf("no process has the name %q", args)
	}
	return s.procs[args[0]]
}

func (s *session) says(neg bool, args []string) {
	p, pattern := s.named(args), regexp.MustCompile("(?m)"+args[1])
	said := func() bool { return pattern.MatchString(p.out.String()) || pattern.MatchString(p.err.String()) }
	if neg {
		if said() {
			s.Fatalf("%s has written %q\nstdout: %s\nstderr: %s", args[0], args[1], p.out.String(), p.err.String())
		}
		return
	}
	poll(s.t, func() string {
		if said() {
			return ""
		}
		return fmt.Sprintf("%s to write %q\nstdout: %s\nstderr: %s", args[0], args[1], p.out.String(), p.err.String())
	})
}

func (s *session) enter(_ bool, args []string) {
	fmt.Fprintln(s.named(args).in, strings.Join(args[1:], " "))
}

func (s *session) signal(_ bool, args []string) {
	p, sig := s.named(args), unix.SignalNum("SIG"+args[1])
	if sig == syscall.SIGSTOP {
		p.freeze()
	} else {
		p.signal(sig)
	}
}

func (s *session) ends(_ bool, args []string) {
	s.ended(s.named(args))
	s.exit(false, append(args[1:], "0"))
}

func (s *session) finish(_ bool, args []string) {
	s.enter(false, args)
	s.ends(false, args)
}

func (s *session) export(_ bool, args []string) {
	name, value, _ := strings.Cut(args[0], "=")
	s.Setenv(name, value)
	s.site.env = append(s.site.env, args[0])
}

func (s *session) capture(_ bool, args []string) {
	groups := regexp.MustCompile("(?m)" + args[0]).FindStringSubmatch(s.ReadFile("stdout"))
	if len(groups) != len(args) {
		s.Fatalf("no match, or another number of groups")
	}
	for i, name := range args[1:] {
		s.export(false, []string{name + "=" + groups[i+1]})
	}
}

func (s *session) redis(_ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	s.Check(err)
	if args[0] == "watched" {
		w := redistest.StartWatched(asTest{s: s.TestScript}, n)
		s.servers = w.Sentinels
		for i, sentinel := range w.Sentinels {
			s.export(false, []string{fmt.Sprintf("SENTINEL%d=%s", i+1, sentinel.Addr())})
		}
		s.export(false, []string{storeVar + "=" + w.URL()})
		return
	}
	if args[0] == "start" {
		for i := range n {
			server, err := redistest.Launch(redistest.Options{Args: args[2:]})
			s.Check(err)
			s.Defer(server.Close)
			if n > 1 {
				server.Declare()
			}
			s.servers = append(s.servers, server)
			s.export(false, []string{fmt.Sprintf("REDIS%d=%s", i+1, server.Addr())})
		}
		s.export(false, []string{storeVar + "=redis://" + addresses(s.servers) + patiently})
		return
	}
	switch server := s.servers[n-1]; args[0] {
	case "kill":
		server.Kill()
	case "restart":
		s.Check(server.Restart())
	case "do":
		reply, err := server.Do(context.Background(), args[2:]...)
		s.Check(err)
		fmt.Fprintln(s.Stdout(), localredis.Text(reply))
	}
}

func (s *session) etcd(_ bool, args []string) {
	if args[0] == "kill" {
		s.member.Members[0].Kill()
		return
	}
	s.member = launchEtcd(s.t)
	s.export(false, []string{"ETCD=" + s.member.Endpoints()[0]})
}

func (s *session) refused(_ bool, args []string) {
	for line := range strings.Lines(s.ReadFile(args[0])) {
		command, says, _ := strings.Cut(os.Expand(strings.TrimSpace(line), s.Getenv), "#")
		if command == "" {
			continue
		}
		code, says := 125, strings.TrimSpace(says)
		if n, rest, ok := strings.Cut(says, ": "); ok {
			if other, err := strconv.Atoi(n); err == nil {
				code, says = other, rest
			}
		}
		words, at := strings.Fields(command), s.site
		for strings.Contains(words[0], "=") {
			at.env, words = append(at.env[:len(at.env):len(at.env)], words[0]), words[1:]
		}
		p := at.run(code, words[1:]...)
		if said := p.err.String(); !strings.Contains(said, says) || !strings.HasPrefix(said, "leasehold: ") || p.out.String() != "" || strings.Contains(said, "secret") {
			s.Fatalf("%s\nstdout %q, stderr %q, want only %q", line, p.out.String(), said, says)
		}
	}
}
