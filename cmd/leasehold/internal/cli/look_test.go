//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestShowTheQueue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	h := s.hold("x")
	queue := func() (places []map[string]any) {
		var one struct{ Queue []map[string]any }
		if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil {
			t.Fatal(err)
		}
		return one.Queue
	}
	wants := func(n int) {
		t.Helper()
		poll(t, func() string {
			if got := queue(); len(got) != n {
				return fmt.Sprintf("%d places in the queue: %v", n, got)
			}
			return ""
		})
	}
	wants(0)
	first := s.start("run", "x", "--purpose", "first", "--", "true")
	wants(1)
	second := s.start("run", "x", "--purpose", "second", "--barge", "--", "true")
	wants(2)
	for i, p := range queue() {
		of := []*proc{first, second}[i]
		if p["position"] != float64(i+1) || p["pid"] != float64(of.cmd.Process.Pid) || p["purpose"] != []string{"first", "second"}[i] ||
			p["expires_in_ms"].(float64) <= 0 || p["since"] == nil || p["host"] == "" || p["owner"] == "" {
			t.Errorf("place %d: %v, want its position, process and times", i+1, p)
		}
	}
	out := s.run(0, "show", "x").out.String()
	for _, part := range []string{"waiting  1. ", "(first), since ", "2. ", "(second), since ", "unless refreshed"} {
		if !strings.Contains(out, part) {
			t.Errorf("%s\nwant text with %q", out, part)
		}
	}
	h.let()
	first.wants(0)
	second.wants(0)
	wants(0)
}

// The trace in which a command was run is shown to others who want its lock.
func TestShowTheTrace(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	s := newSite(t, "TRACEPARENT=00-"+id+"-00f067aa0ba902b7-01")
	h := s.hold("x")
	if out := s.run(0, "show", "x").out.String(); !strings.Contains(out, "trace    "+id) {
		t.Errorf("no trace is shown:\n%s, want text with %q", out, "trace    "+id)
	}
	var one struct{ Trace string }
	if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil || one.Trace != "00-"+id+"-00f067aa0ba902b7-01" {
		t.Errorf("the trace is %q (%v), want that of the holder", one.Trace, err)
	}
	if msg := s.run(124, "run", "x", "--try", "--", "true").err.String(); !strings.Contains(msg, "trace "+id) {
		t.Errorf("no trace is named: %s, want text with %q", msg, "trace "+id)
	}
	h.let()
}

func TestListAndShow(t *testing.T) {
	s := newSite(t)
	if p := s.run(0, "ls"); p.out.String() != "" || !strings.Contains(p.err.String(), "no lock is held") {
		t.Errorf("stdout %q, stderr %q, want nothing on stdout and text with %q", p.out.String(), p.err.String(), "no lock is held")
	}
	if p := s.run(0, "ls", "--quiet"); p.err.String() != "" {
		t.Errorf("stderr %q, want nothing on stderr", p.err.String())
	}
	b, a := s.hold("b/x", "--purpose", "some \x1b[31m reason"), s.hold("a x")

	p := s.run(0, "ls")
	if out := p.out.String(); !strings.Contains(out, `"a x"`) || strings.Index(out, `"a x"`) > strings.Index(out, "b/x") || strings.Contains(out, "\x1b") {
		t.Errorf("%q, want both locks, sorted", out)
	}
	var list []map[string]any
	if err := json.Unmarshal([]byte(s.run(0, "ls", "--json", "b/").out.String()), &list); err != nil || len(list) != 1 || list[0]["name"] != "b/x" {
		t.Errorf("%v, %v, want only the lock with the prefix", list, err)
	}

	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	out := s.run(0, "show", "b/x").out.String()
	for _, part := range []string{"b/x", host + " pid " + strconv.Itoa(b.cmd.Process.Pid), "since", " ago)", "s unless renewed", "token"} {
		if !strings.Contains(out, part) {
			t.Errorf("%s\nwant text with %q", out, part)
		}
	}
	var one map[string]any
	if err := json.Unmarshal([]byte(s.run(0, "show", "b/x", "--json").out.String()), &one); err != nil {
		t.Fatal(err)
	}
	if one["held"] != true || one["host"] != host || one["pid"] != float64(b.cmd.Process.Pid) || one["purpose"] != "some \x1b[31m reason" ||
		one["token"].(float64) < 1 || one["expires_in_ms"].(float64) <= 0 || one["expires_in_ms"].(float64) > 30000 {
		t.Errorf("%v, want the holder, its purpose, its token and its expiry", one)
	}
	if since, err := time.Parse(time.RFC3339, one["since"].(string)); err != nil || time.Since(since) > time.Hour || time.Since(since) < 0 {
		t.Errorf("since %v (%v), want a time within the last hour", one["since"], err)
	}
	if p := s.run(124, "show", "b/x", "--exit-code", "--quiet"); p.out.String()+p.err.String() != "" {
		t.Errorf("stdout %q, stderr %q, want nothing on stderr", p.out.String(), p.err.String())
	}
	a.let()
	b.let()
	s.run(0, "show", "b/x", "--exit-code")
	if out := s.run(0, "show", "b/x", "--json").out.String(); strings.Join(strings.Fields(out), "") != `{"name":"b/x","held":false}` {
		t.Error(out)
	}
	if out := s.run(0, "show", "b/x").out.String(); !strings.Contains(out, "nobody") {
		t.Errorf("stdout %s, want text with %q", out, "nobody")
	}
}

func TestVersion(t *testing.T) {
	s := newSite(t)
	if out := s.run(0, "version").out.String(); !strings.HasPrefix(out, "leasehold ") || !strings.Contains(out, " go1.") {
		t.Errorf("stdout %s, want %q at the beginning and text with %q", out, "leasehold ", " go1.")
	}
	var b build
	if err := json.Unmarshal([]byte(s.run(0, "version", "--json").out.String()), &b); err != nil || b.Version == "" || !strings.HasPrefix(b.Go, "go1.") || b.OS == "" || b.Arch == "" {
		t.Errorf("%+v, %v, want a version, and where it was built for", b, err)
	}
}

func TestCompletion(t *testing.T) {
	s := newSite(t)
	// Shells call this. The last line is a directive, which does not matter here.
	complete := func(args ...string) []string {
		out := s.run(0, append([]string{"__complete"}, args...)...).out.String()
		return strings.Fields(out[:strings.LastIndex(out, ":")])
	}
	if got := complete("show", ""); len(got) != 0 {
		t.Errorf("without a store: completions %q, want none", got)
	}
	if _, err := os.Stat(filepath.Join(s.home, ".local")); err == nil {
		t.Error("completion has made a lock folder, want none")
	}
	x, y, odd := s.hold("deploy/x"), s.hold("other"), s.hold("deploy/ odd")
	// A shell would run a part of these, expand it, or take it for a flag.
	for _, name := range []string{"deploy/`id`", "deploy/$(id)", "deploy/$HOME", "deploy/a;id", "deploy/a|id", "deploy/a&id", "deploy/<x", "deploy/*", "deploy/?", "deploy/[a]", "deploy/{a,b}", "deploy/!id", "deploy/#", `deploy/"a"`, "deploy/'a'", `deploy/a\b`, "deploy/(a)", "deploy/^a", "deploy/a~b", "deploy/a,b", "deploy/grün", "~root", "=id", "@x", "%1"} {
		h := s.hold(name)
		defer h.let()
	}
	h := s.hold("--", "-rf") // the name is -rf
	defer h.let()
	if got := complete("show", ""); !slices.Equal(got, []string{"deploy/x", "other"}) {
		t.Errorf("completions %q, want deploy/x and other", got)
	}
	for _, args := range [][]string{{"show", "dep"}, {"ls", "dep"}, {"run", "dep"}, {"run", "--store=file:" + filepath.Join(s.home, ".local/state/leasehold/locks"), "dep"}} {
		if got := complete(args...); len(got) != 1 || got[0] != "deploy/x" {
			t.Errorf("%q: completions %q, want deploy/x", args, got)
		}
	}
	for _, args := range [][]string{{"show", "other", "dep"}, {"run", "other", "--", "dep"}, {"show", "--store=redis://127.0.0.1:1", ""}, {"show", "--store=nope://", ""}} {
		if got := complete(args...); len(got) != 0 {
			t.Errorf("%q: completions %q, want none", args, got)
		}
	}
	for _, p := range []*proc{x, y, odd} {
		p.let()
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := s.run(0, "completion", shell).out.String(); !strings.Contains(out, "leasehold") {
			t.Errorf("%s: %s, want text with %q", shell, out, "leasehold")
		}
	}
}

func TestEachHelpHasAnExample(t *testing.T) {
	s := newSite(t)
	for _, c := range []string{"", "run", "ls", "show", "version"} {
		args := []string{"--help"}
		if c != "" {
			args = []string{c, "--help"}
		}
		out := s.run(0, args...).out.String()
		if c == "" {
			out = "Examples:" + strings.Replace(out, "\n\n", "\n", 1)
		}
		if _, example, ok := strings.Cut(out, "\n  leasehold "+c); !ok || example == "" {
			t.Errorf("%q has no example, want one:\n%s", c, out)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		says string
		args string
	}{
		{`there is no command "foo" (`, "foo"},
		{`there is no command "lock": did you mean "leasehold run"?`, "lock x"},
		{`there is no command "shwo": did you mean "leasehold show"?`, "shwo x"},
		{`there is no command "nightly": did you mean "leasehold run nightly -- ..."?`, "nightly -- true"},
		{"no command", "help foo"},
		{`no command or topic "exit": did you mean "leasehold help exit-codes"?`, "help exit"},
		{`no command or topic "rnu": did you mean "leasehold help run"?`, "help rnu"},
		{"there is no flag --perm: did you mean --permits?", "run x --perm 2 -- true"},
		{`--require: unknown class "crashsafe": choose one of`, "run x --require crashsafe -- true"},
		{"--store: redis: is followed by two slashes: write redis://", "run x --store redis:/127.0.0.1 -- true"},
		{"completion bash|zsh|fish|powershell", "completion"},
		{"completion bash|zsh|fish|powershell", "completion nosuchshell"},
		{"no command", "run -- -x --"},
		{"--store is empty: give the store's URL", "--store= ls"},
		{"--store-file is empty: give a file with", "--store-file= ls"},
		{`put "--"`, "run"},
		{`put "--"`, "run x echo hi"},
		{`give the name of a lock before the "--"`, "run -- true"},
		{`give the name of a lock before the "--"`, "run -- true -- x"},
		{"not 2", "run x y -- true"},
		{"no command", "run x --"},
		{"there is no flag --bogus (", "run x --bogus -- true"},
		{"there is no flag --tll: did you mean --ttl?", "run x --tll 5s -- true"},
		{"there is no flag --for: did you mean --wait?", "run x --for 5s -- true"},
		{"there is no flag -z (", "run x -z -- true"},
		{"exclude each other", "run x --try --wait 1s -- true"},
		{"exclude each other", "run x --try --barge -- true"},
		{"the maximum is 1024", "run " + strings.Repeat("x", 1025) + " -- true"},
		{"is reserved", "run {x}:token -- true"},
		{"is reserved", "show leasehold:node"},
		{"--ttl 1ms", "run x --ttl 1ms -- true"},
		{`--ttl "soon" is no time such as 30s, 5m or 1h30m`, "run x --ttl soon -- true"},
		{`--ttl "5" is no time: did you mean 5s?`, "run x --ttl 5 -- true"},
		{`--wait "5min" is no time: did you mean 5m?`, "run x --wait 5min -- true"},
		{`--for "2days" is no time: did you mean 48h?`, "wait x --for 2days"},
		{`--token "abc": not a whole number`, "break x --token abc --reason y"},
		{`--token "99999999999999999999": out of range`, "break x --token 99999999999999999999 --reason y"},
		{`--permits "two": not a whole number`, "run x --permits two -- true"},
		{"half of --ttl", "run x --grace 16s -- true"},
		{"half of --max-hold", "run x --grace 6s --max-hold 10s -- true"},
		{"--min-hold", "run x --min-hold 6s --max-hold 5s -- true"},
		{"--max-hold", "run x --max-hold 1ms -- true"},
		{"--wait -1s: a time cannot be negative", "run x --wait -1s -- true"},
		{"--ttl -1s: a time cannot be negative", "run x --ttl -1s -- true"},
		{"--min-hold -1s: a time cannot be negative", "run x --min-hold -1s -- true"},
		{"--for -1s: a time cannot be negative", "wait x --for -1s"},
		{"--grace -1s: a time cannot be negative", "run x --grace -1s -- true"},
		{"0 to 255", "run x -E 256 -- true"},
		{"give the name of a lock (", "show"},
		{"one lock", "show x y"},
		{"one prefix", "ls x y"},
		{"no arguments", "version x"},
		{"exclude each other", "ls --store file --store-file x"},
		{`--store: unknown store "nope://": there are file, redis, `, "--store nope://secret@x ls"},
		{`--store: unknown store "redi://": did you mean redis://?`, "--store redi://:secret@x ls"},
		{"--store: 127.0.0.1:7101 is no URL: did you mean redis://127.0.0.1:7101?", "--store 127.0.0.1:7101 ls"},
		{"--store: localhost:2379 is no URL: did you mean etcd://localhost:2379?", "--store localhost:2379 ls"},
		{"--store: ./x.db is no URL: did you mean file:./x.db?", "--store ./x.db ls"},
		{"--store: redis: the address that", "--store redis://127.0.0.1:x ls"},
		{"it is no URL of a store", "--store secret:4 ls"},
		{"it is no URL of a store", "--store u:secret@x ls"},
		{"exclude nobody", "--store memory: run x -- true"},
		{"store file", "--store-file /does/not/exist ls"},
	} {
		p := s.run(125, strings.Fields(c.args)...)
		if msg := p.err.String(); !strings.Contains(msg, c.says) || !strings.HasPrefix(msg, "leasehold: ") || p.out.String() != "" || strings.Contains(msg, "secret") {
			t.Errorf("%s: stdout %q, stderr %q, want text with %q", c.args, p.out.String(), msg, c.says)
		}
	}
	s.env = append(s.env, storeVar+"=file", storeFileVar+"=/x")
	s.run(125, "ls")
	for _, kv := range []string{storeVar + "=", storeVar + "= \n", storeFileVar + "="} {
		at := newSite(t, kv)
		name, _, _ := strings.Cut(kv, "=")
		if said := at.run(125, "run", "x", "--", "true").err.String(); !strings.Contains(said, name+" is set and empty") {
			t.Errorf("%q: %q, want text with %q", kv, said, name+" is set and empty")
		}
	}
	if p := s.run(125, "run", "", "--", "true"); !strings.Contains(p.err.String(), "empty") {
		t.Errorf("%q, want text with %q", p.err.String(), "empty")
	}
	if entries, err := os.ReadDir(s.home); err != nil || len(entries) > 0 {
		t.Errorf("the home directory has %v (%v), want nothing", entries, err)
	}
}

func TestPathsOfTheLockFile(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	list := filepath.Join(dir, "store")
	if err := os.WriteFile(list, []byte("# ours\nfile:"+filepath.Join(dir, "listed.db")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{nil, nil, filepath.Join(s.home, ".local", "state", "leasehold", "locks")},
		{[]string{"XDG_STATE_HOME=" + state}, nil, filepath.Join(state, "leasehold", "locks")},
		{[]string{storeVar + "=file://" + filepath.Join(dir, "var.db")}, nil, filepath.Join(dir, "var.db")},
		{[]string{storeVar + "= file://" + filepath.Join(dir, "trimmed.db") + "\n"}, nil, filepath.Join(dir, "trimmed.db")},
		{[]string{storeVar + "="}, []string{"--store", "file:" + filepath.Join(dir, "over.db") + "\r\n"}, filepath.Join(dir, "over.db")},
		{[]string{storeFileVar + "=" + list, storeVar + "="}, nil, filepath.Join(dir, "listed.db")},
		{[]string{storeFileVar + "=", storeVar + "=file:" + filepath.Join(dir, "alone.db")}, nil, filepath.Join(dir, "alone.db")},
		{[]string{storeFileVar + "=" + list}, nil, filepath.Join(dir, "listed.db")},
		{[]string{storeVar + "=nope:"}, []string{"--store-file", list}, filepath.Join(dir, "listed.db")},
		{[]string{storeVar + "=nope:"}, []string{"--store", "file:" + filepath.Join(dir, "arg.db")}, filepath.Join(dir, "arg.db")},
	} {
		os.RemoveAll(c.want)
		at := &site{t: t, env: append(s.env[:len(s.env):len(s.env)], c.env...)}
		at.run(0, append(c.args, "run", "x", "--", "true")...)
		info, err := os.Stat(c.want)
		if err != nil {
			t.Errorf("%v %v: %v", c.env, c.args, err)
		} else if info.Mode().Perm() != 0o700 || !info.IsDir() {
			t.Errorf("%s has mode %v, want a folder with 0700", c.want, info.Mode())
		}
	}
}

// A directory that does not exist may be a typing error, and a lock in it would exclude
// nobody.
func TestOnlyTheDefaultDirectoryIsMade(t *testing.T) {
	s := newSite(t)
	dir := filepath.Join(s.home, "typo")
	path := filepath.Join(dir, "x.db")
	if said := s.run(125, "--store", "file:"+path, "run", "x", "--", "true").err.String(); !strings.Contains(said, "there is no directory "+dir) || !strings.Contains(said, "create it") {
		t.Errorf("run: %s, want text with %q and %q", said, "there is no directory "+dir, "create it")
	}
	// A command that only looks needs no directory, so it does not advise to create one.
	if said := s.run(125, "--store", "file:"+path, "ls").err.String(); !strings.Contains(said, "there is no lock folder "+path) {
		t.Errorf("ls: %s, want text with %q", said, "there is no lock folder "+path)
	}
	if codes, said := s.doctor(2, "--store", "file:"+path); codes["file-unusable"] != "error" {
		t.Errorf("%s, want the finding file-unusable (error)", said)
	}
	if left, err := os.ReadDir(s.home); err != nil || len(left) > 0 {
		t.Errorf("the home directory has %v (%v), want nothing", left, err)
	}
	s.run(0, "run", "x", "--", "true")
}

// A lock folder whose path is mistyped is not made by a command that only looks.
func TestLookingMakesNoFile(t *testing.T) {
	s := newSite(t)
	path := filepath.Join(s.home, "mistyped.db")
	for _, args := range [][]string{{"ls"}, {"show", "x"}, {"wait", "x"}, {"watch", "x"}, {"release", "x", "--owner", "o"}, {"break", "x", "--token", "7", "--reason", "r"}} {
		p := s.run(125, append(args, "--store", "file:"+path)...)
		if !strings.Contains(p.err.String(), "there is no lock folder "+path) {
			t.Errorf("%q: stderr %s, want that there is no such file", args, p.err.String())
		}
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%q has made the file", args)
		}
	}
	s.run(0, "run", "x", "--store", "file:"+path, "--", "true")
	s.run(0, "ls", "--store", "file:"+path)
}

// A bad URL is said to be from the flag, the variable or the file that it is from, and a command in
// one word with spaces is not taken for one that is not installed.
func TestWrongUsageNamesTheSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store")
	if err := os.WriteFile(file, []byte("# ours\nredi://a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ env, args, says string }{
		{"LEASEHOLD_STORE=redi://a", "ls", `LEASEHOLD_STORE: unknown store "redi://"`},
		{"LEASEHOLD_STORE=redis://a:x", "ls", "LEASEHOLD_STORE: redis: the address that"},
		{"LEASEHOLD_STORE_FILE=" + file, "ls", "LEASEHOLD_STORE_FILE " + file + `: unknown store "redi://"`},
		{"A=b", "ls --store-file " + file, "--store-file " + file + `: unknown store "redi://"`},
	} {
		if p := newSite(t, c.env).run(125, strings.Fields(c.args)...); !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%s %s: %s, want text with %q", c.env, c.args, p.err.String(), c.says)
		}
	}
	s := newSite(t)
	if p := s.run(127, "run", "x", "--", "make deploy"); !strings.Contains(p.err.String(), `there is no shell that splits it: leave out the quotation marks, or write -- sh -c "make deploy"`) {
		t.Errorf("%s, want that no shell splits the word", p.err.String())
	}
	h := s.hold("x")
	s.run(124, "wait", "x", "--wait", "1s")
	h.let()
}

// TAB completes the values of flags.
func TestCompletionOfValues(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ args, want string }{
		{"run x --require \x00", "crash-safe consensus"},
		{"run x --require=con", "--require=consensus consensus"},
		{"run x --ttl \x00", "5s 10s 30s 1m 5m 10m 1h"},
		{"wait x --for 1", "10s 1m 10m 1h"},
		{"ls --store redis-", "redis-sentinel:// redis-cluster://"},
		{"help exit", "exit-codes"},
	} {
		args := strings.Fields(c.args)
		if i := len(args) - 1; args[i] == "\x00" {
			args[i] = ""
		}
		var got []string
		for line := range strings.Lines(s.run(0, append([]string{"__complete"}, args...)...).out.String()) {
			if word, _, _ := strings.Cut(strings.TrimSpace(line), "\t"); !strings.HasPrefix(word, ":") && word != "" {
				got = append(got, word)
			}
		}
		for _, w := range got {
			if !strings.Contains(" "+c.want+" ", " "+w+" ") {
				t.Errorf("%q: completions %q, want %s", c.args, got, c.want)
			}
		}
		if len(got) == 0 {
			t.Errorf("%q: no completions, want %s", c.args, c.want)
		}
	}
}
