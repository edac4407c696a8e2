//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/creack/pty"

	"github.com/leasehold-dev/leasehold/cmd/leasehold/internal/screen"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// statuses returns the status lines that a terminal was sent, without what removes them.
func statuses(shown string) []string {
	var lines []string
	for _, part := range regexp.MustCompile(`\r(?:\x1b\[K|\x1b\[[0-9]+A\x1b\[J)`).Split(shown, -1) {
		if strings.HasPrefix(part, "waiting") {
			lines = append(lines, part)
		}
	}
	return lines
}

// The line about a wait fits on terminals of any width, whatever the names of the lock and of its
// holder are, and has no character that a terminal could act on. Ctrl-C leaves nothing of it.
func TestTerminalWaitingLineFits(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	for _, c := range []struct{ what, name, purpose string }{
		{"control characters", "odd\x1b[2Jname", "\x1b]0;title\x07\x9b31m\u202e\r\nHELD"},
		{"wide characters", strings.Repeat("錠前", 20), strings.Repeat("備份", 30) + "👍"},
		{"marks", "e" + strings.Repeat("\u0301", 30), strings.Repeat("o\u0308", 50)},
		{"a long name", strings.Repeat("very-long-", 90), strings.Repeat("p", 300)},
	} {
		h := s.hold(c.name, "--purpose", c.purpose)
		for _, columns := range []uint16{40, 80, 200} {
			m := s.onTerminalOf(columns, nil, binary, "run", c.name, "--", "true")
			poll(t, func() string {
				if len(statuses(m.shown.String())) >= 3 {
					return ""
				}
				return fmt.Sprintf("%s: three status lines: %q", c.what, m.shown.String())
			})
			m.types("\x03")
			m.wants(130)
			<-m.ended
			for _, line := range statuses(m.shown.String()) {
				line = strings.TrimSuffix(strings.TrimSuffix(line, "^C"), "\r\n")
				if strings.ContainsFunc(line, unicode.IsControl) || screen.Width(line) >= int(columns) {
					t.Errorf("%s, %d columns: a line of %d columns: %q", c.what, columns, screen.Width(line), line)
				}
			}
			if end := m.shown.String(); !strings.HasSuffix(strings.TrimSuffix(end, "^C"), "\r\x1b[K") {
				t.Errorf("%s, %d columns: the terminal ends with %q, want the line removed", c.what, columns, end[max(0, len(end)-30):])
			}
		}
		h.let()
	}
}

// When the window gets narrower, the line has wrapped, and all of it is removed.
func TestTerminalWaitingLineInASmallerWindow(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	h := s.hold("x", "--purpose", strings.Repeat("p", 200))
	m := s.onTerminal("run", "x", "--", "true")
	m.shows("(ppp")
	if err := pty.Setsize(m.pty, &pty.Winsize{Rows: 24, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	m.shows("\x1b[J")
	if n := regexp.MustCompile(`\r\x1b\[([0-9]+)A\x1b\[J`).FindStringSubmatch(m.shown.String()); n == nil || n[1] == "0" {
		t.Errorf("the terminal: %q, want that the lines above are removed", m.shown.String())
	}
	h.let()
	m.wants(0)
}

// A terminal that cannot erase, and a file, get lines of their own without escape sequences.
func TestWaitingWithoutAStatusLine(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	h := s.hold("x")
	m := s.onTerminalOf(80, []string{"TERM=dumb"}, binary, "run", "x", "--wait", "300ms", "--", "true")
	m.wants(124)
	<-m.ended
	file := filepath.Join(t.TempDir(), "err")
	to := s.onTerminalOf(80, []string{"FILE=" + file}, "/bin/sh", "-c", `"$0" run x --wait 300ms -- true 2>"$FILE"`, binary)
	to.wants(124)
	<-to.ended
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if to.shown.String() != "" {
		t.Errorf("the terminal has %q, want nothing", to.shown.String())
	}
	for _, said := range []string{m.shown.String(), string(text)} {
		if strings.Contains(said, "\x1b") || strings.Count(said, "leasehold: waiting up to 300ms for \"x\"") != 1 || !strings.Contains(said, "is held by") {
			t.Errorf("%q, want a line about the wait and one about its end", said)
		}
	}
	h.let()
}

// An error over several servers has a line for each on a terminal, after how many answered, and is one
// line elsewhere. It is said once, and grants nothing.
func TestTerminalErrorOverServers(t *testing.T) {
	servers := redistest.StartN(t, 5)
	s := newSite(t, storeVar+"=redis://"+addresses(servers)+patiently)
	h := s.hold("x")
	for _, down := range servers[2:] {
		down.Kill()
	}
	for _, args := range [][]string{{"run", "y", "--try", "--", "true"}, {"show", "x"}, {"ls"}, {"wait", "y", "--for", "0"}} {
		m := s.onTerminal(args...)
		m.wants(125)
		<-m.ended
		text := strings.ReplaceAll(m.shown.String(), "\r\n", "\n")
		_, failure, found := strings.Cut(text, ": 2 of 5 servers answered, 3 are needed\n")
		lines := strings.Split(strings.TrimSuffix(failure, "\n"), "\n")
		if !found || len(lines) != 5 || strings.Count(text, "3 are needed") != 1 || strings.Contains(text, "granted") || strings.Contains(text, "warning") {
			t.Errorf("%q:\n%s\nwant how many answered, and a line for each server", args, text)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, "  "+servers[i].Addr()+": ") || i >= 2 && !strings.HasSuffix(line, ": connection refused") {
				t.Errorf("%q: line %d is %q, want one about %s", args, i, line, servers[i].Addr())
			}
		}
		p := s.start(args...)
		p.in.Close()
		if p.wants(125); strings.Count(p.err.String(), "\n") != 1 || !strings.Contains(p.err.String(), "2 of 5 servers answered, 3 are needed: "+servers[0].Addr()) {
			t.Errorf("%q: stderr %q, want one line", args, p.err.String())
		}
		if (args[0] == "show" || args[0] == "ls") && (!strings.Contains(p.out.String(), "may") || !strings.Contains(text, "may")) {
			t.Errorf("%q: stdout %q, want the lock as one that may be held", args, p.out.String())
		}
	}
	var one struct{ Held, Incomplete bool }
	if err := json.Unmarshal([]byte(s.run(125, "show", "x", "--json").out.String()), &one); err != nil || one.Held || !one.Incomplete {
		t.Errorf("show --json: %+v, %v, want an incomplete answer", one, err)
	}
	h.cmd.Process.Kill()
}

// The doctor's severities have colours on a terminal, unless NO_COLOR is set, and nowhere else.
func TestTerminalColours(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct {
		env    []string
		shell  string
		colour bool
	}{
		{nil, `"$0" doctor --store redis://127.0.0.1:1`, true},
		{[]string{"NO_COLOR=1"}, `"$0" doctor --store redis://127.0.0.1:1`, false},
		{[]string{"TERM=dumb"}, `"$0" doctor --store redis://127.0.0.1:1`, false},
		{nil, `"$0" doctor --store redis://127.0.0.1:1 | cat`, false},
		{nil, `"$0" doctor --store redis://127.0.0.1:1 2>/dev/null`, true},
	} {
		m := s.onTerminalOf(80, c.env, "/bin/sh", "-c", c.shell, binary)
		m.cmd.Wait()
		<-m.ended
		text := m.shown.String()
		if got := strings.Contains(text, "\x1b[31;1merror\x1b[0m: node-unreachable"); got != c.colour || !c.colour && strings.Contains(text, "\x1b[3") || !strings.Contains(text, "node-unreachable") {
			t.Errorf("%v, %s: %q, coloured: %v, want %v", c.env, c.shell, text, got, c.colour)
		}
	}
}

// watch --prefix tells of all locks whose names begin so.
func TestWatchManyLocks(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	a, other := s.hold("jobs/a"), s.hold("other")
	p := s.start("watch", "--prefix", "jobs/", "--every", "20ms", "--json")
	people := s.start("watch", "--prefix", "jobs/", "--every", "20ms")
	p.says(&p.out, `"event":"held","name":"jobs/a"`)
	people.says(&people.out, " jobs/a: ")
	b := s.hold("jobs/b")
	p.says(&p.out, `"event":"acquired","name":"jobs/b"`)
	a.let()
	p.says(&p.out, `"event":"over","name":"jobs/a"`)
	p.says(&p.out, `"event":"free","name":"jobs/a"`)
	people.says(&people.out, " jobs/a\n")
	b.let()
	other.let()
	p.says(&p.out, `"event":"free","name":"jobs/b"`)
	if strings.Contains(p.out.String(), "other") {
		t.Errorf("%s, want nothing of another lock", p.out.String())
	}
	s.run(125, "watch", "x", "--prefix", "jobs/")
}
