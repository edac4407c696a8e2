//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// A command that asks for the lock that it runs under would wait for its own end.
func TestRunUnderItself(t *testing.T) {
	t.Parallel() // it mostly waits
	for what, url := range map[string]string{"file": "file", "one server": redistest.Start(t).URL(), "several": "redis://" + addresses(redistest.StartN(t, 3))} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, storeVar+"="+url)
			for _, flags := range [][]string{nil, {"--wait", "1h"}, {"--barge"}} {
				inner := append(append([]string{binary, "run", "x"}, flags...), "--", "echo", "ran")
				p := s.run(125, append([]string{"run", "x", "--"}, inner...)...)
				if said := p.err.String(); p.out.String() != "" || strings.Count(said, "\n") != 1 || !strings.Contains(said, "that we run under") || !strings.Contains(said, ownerVar) {
					t.Errorf("%q: stdout %q, stderr %q, want one line on stderr and nothing on stdout", flags, p.out.String(), said)
				}
			}
			if said := s.run(124, "run", "x", "--", binary, "run", "x", "--try", "--", "true").err.String(); !strings.Contains(said, "that we run under") {
				t.Errorf("not waiting: %q, want text with %q", said, "that we run under")
			}
			if said := s.run(125, "run", "x", "--", binary, "wait", "x").err.String(); !strings.Contains(said, "that we run under") {
				t.Errorf("only waiting: %q, want text with %q", said, "that we run under")
			}
			s.run(0, "run", "x", "--", binary, "run", "y", "--", "true")
			// The same two and three levels down, whatever the name.
			odd := "x \xff\n$'"
			for _, between := range [][]string{{"y"}, {"y", odd}, {odd, "y", "z"}} {
				args := []string{"run", odd + "1", "--"}
				for _, name := range between {
					args = append(args, binary, "run", name, "--")
				}
				args = append(args, binary, "run", odd+"1", "--wait", "1h", "--", "echo", "ran")
				p := s.run(125, args...)
				if said := p.err.String(); p.out.String() != "" || strings.Count(said, "\n") != 1 || !strings.Contains(said, "that we run under") {
					t.Errorf("%q: stdout %q, stderr %q, want one line on stderr and nothing on stdout", between, p.out.String(), said)
				}
			}
			s.run(0, "show", "x", "--exit-code") // nothing is left
		})
	}
}

// A reader under a reader is let in, unless a writer waits in between: that waits for the
// outer reader, and so would the inner one.
func TestReaderUnderAReader(t *testing.T) {
	s := newSite(t)
	s.run(0, "run", "x", "--shared", "--", binary, "run", "x", "--shared", "--", "true")
	writer := filepath.Join(s.home, "writer")
	outer := s.start("run", "x", "--shared", "--", "/bin/sh", "-c", `echo reads; until [ -e "$0" ]; do sleep 0.02; done; exec "$@"`, writer,
		binary, "run", "x", "--shared", "--wait", "1h", "--", "echo", "ran")
	outer.says(&outer.out, "reads")
	w := s.start("run", "x", "--exclusive", "--", "true")
	w.says(&w.err, "waiting")
	if err := os.WriteFile(writer, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	outer.wants(125)
	if said := outer.err.String(); outer.out.String() != "reads\n" || !strings.Contains(said, "that we run under") {
		t.Errorf("stdout %q, stderr %q, want %q and text with %q", outer.out.String(), said, "reads\n", "that we run under")
	}
	w.wants(0)
}

// The name alone does not make it the lock that we run under: that needs its owner, too.
func TestRunBesideAnotherOfThatName(t *testing.T) {
	s := newSite(t)
	other := "file:" + filepath.Join(s.home, "other.db")
	s.run(0, "run", "x", "--", binary, "run", "x", "--store", other, "--", "true")
	h := s.hold("x", "--store", other)
	p := s.start("run", "x", "--", binary, "run", "x", "--store", other, "--", "echo", "mine now")
	p.says(&p.err, " for \"x\"")
	h.let()
	p.wants(0)
	if p.out.String() != "mine now\n" {
		t.Errorf("stdout %q, want %q", p.out.String(), "mine now\n")
	}
}

// A version between the two that knows only its own owner does not hide those
// above it, and two leases are not mistaken for each other by their names.
func TestRunUnderItselfWithOthersBetween(t *testing.T) {
	s := newSite(t)
	for _, between := range [][]string{
		{"/bin/sh", "-c", `LEASEHOLD_OWNER=of-another LEASEHOLD_NAME=y exec "$@"`, "sh"},
		{"/bin/sh", "-c", `LEASEHOLD_NAME=z exec "$@"`, "sh"},
	} {
		args := append([]string{"run", "x", "--"}, between...)
		args = append(args, binary, "run", "x", "--wait", "1h", "--", "true")
		if said := s.run(125, args...).err.String(); !strings.Contains(said, "that we run under") {
			t.Errorf("%q: %q, want text with %q", between, said, "that we run under")
		}
	}
}

// A process in the background can take the lock when the command around it has ended. It
// asks for that by leaving out the owner.
func TestRunInTheBackgroundOfItself(t *testing.T) {
	s := newSite(t)
	p := s.start("run", "x", "--", "/bin/sh", "-c", `env -u LEASEHOLD_OWNER "$0" run x -- echo after & read x; exit 3`, binary)
	p.says(&p.err, " for \"x\"")
	p.in.Write([]byte("\n"))
	p.says(&p.out, "after\n")
	p.wants(3)
}
