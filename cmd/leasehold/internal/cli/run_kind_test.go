//go:build unix

package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/statejson"
)

// Readers share a lock, and a writer has it alone.
func TestRunShared(t *testing.T) { everyKindOfLock(t, readersShare) }

func readersShare(t *testing.T, s *site) {
	t.Helper()
	one, two := s.hold("x", "--shared"), s.hold("x", "--shared")
	if p := s.run(125, "run", "x", "--try", "--", "true"); !strings.Contains(p.err.String(), "read-write lock") || !strings.Contains(p.err.String(), "as a mutex") {
		t.Errorf("another kind: %s, want text with %q and %q", p.err.String(), "read-write lock", "as a mutex")
	}
	if p := s.run(125, "run", "x", "--permits", "2", "--", "true"); !strings.Contains(p.err.String(), "semaphore of 2") {
		t.Errorf("another kind: %s, want text with %q", p.err.String(), "semaphore of 2")
	}
	s.run(124, "run", "x", "--exclusive", "--try", "--", "true")
	writer := s.start("run", "x", "--exclusive", "--", "/bin/sh", "-c", "echo held; read x")
	writer.says(&writer.err, "waiting")
	late := s.start("run", "x", "--shared", "--", "echo", "late")
	late.says(&late.err, "waiting")
	one.let()
	two.let()
	writer.says(&writer.out, "held\n")
	if out := s.run(0, "ls").out.String(); !strings.Contains(out, "writer") {
		t.Errorf("stdout %s, want text with %q", out, "writer")
	}
	if late.out.String() != "" {
		t.Error("a reader holds the lock beside the writer, want it to wait")
	}
	writer.in.Close()
	writer.end()
	late.wants(0)
}

// A semaphore numbers its holders, and a heavy one takes several permits.
func TestRunPermits(t *testing.T) { everyKindOfLock(t, permitsAreNumbered, slotVar+"=7") }

func permitsAreNumbered(t *testing.T, s *site) {
	t.Helper()
	print := []string{"--", "/bin/sh", "-c", "echo slot $LEASEHOLD_SLOT; read x; exit 0"}
	var held []*proc
	for _, slot := range []string{"0", "1"} {
		p := s.start(append([]string{"run", "x", "--permits", "3"}, print...)...)
		p.says(&p.out, "slot "+slot+"\n")
		held = append(held, p)
	}
	s.run(124, "run", "x", "--permits", "3", "--weight", "2", "--try", "--", "true")
	if p := s.run(125, "run", "x", "--permits", "4", "--", "true"); !strings.Contains(p.err.String(), "semaphore of 3") || !strings.Contains(p.err.String(), "semaphore of 4") {
		t.Errorf("another number of permits: %s, want text with %q and %q", p.err.String(), "semaphore of 3", "semaphore of 4")
	}
	held[0].let()
	p := s.start(append([]string{"run", "x", "--permits", "3", "--weight", "2"}, print...)...)
	p.says(&p.out, "slot 0\n")
	var one statejson.State
	one.Lease = new(statejson.Lease)
	if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil || one.Kind != "semaphore" || one.Permits != 3 || len(one.Holders) != 2 {
		t.Errorf("%+v, %v, want a semaphore of 3 with two holders", one, err)
	}
	p.let()
	held[1].let()
	if p := s.run(0, "run", "x", "--", "/bin/sh", "-c", "echo slot $LEASEHOLD_SLOT."); p.out.String() != "slot .\n" {
		t.Errorf("a mutex has %s, want %q", p.out.String(), "slot .\n")
	}
	acquire := func() (owner string) {
		return strings.Fields(s.run(0, "acquire", "x", "--permits", "2", "--ttl", "1m", "--try").out.String())[0]
	}
	first, second := acquire(), acquire()
	s.run(124, "acquire", "x", "--permits", "2", "--ttl", "1m", "--try")
	s.run(0, "release", "x", "--owner", first)
	for _, owner := range []string{acquire(), second} {
		s.run(0, "release", "x", "--owner", owner)
	}
}

// Several locks are acquired together, all or none, and the command has the tokens of
// all.
func TestRunAlso(t *testing.T) {
	everyStore(t, func(t *testing.T, s *site) {
		h := s.hold("b")
		if p := s.run(124, "run", "c", "--also", "b", "--also", "a", "--try", "--", "true"); !strings.Contains(p.err.String(), `"b"`) {
			t.Errorf("stderr %s, want text with %q", p.err.String(), `"b"`)
		}
		for _, name := range []string{"a", "c"} {
			s.run(0, "show", name, "--exit-code")
		}
		p := s.start("run", "c", "--also", "b", "--also", "a", "--", "/bin/sh", "-c", "echo $LEASEHOLD_NAME $LEASEHOLD_TOKEN $LEASEHOLD_TOKENS; exec "+binary+" ls --json")
		p.says(&p.err, ` for "b"`)
		h.let()
		p.wants(0)
		first, list, _ := strings.Cut(p.out.String(), "\n")
		var locks []struct {
			Name  string
			Token json.Number
		}
		words := strings.Fields(first)
		if err := json.Unmarshal([]byte(list), &locks); err != nil || len(locks) != 3 || len(words) != 5 {
			t.Fatalf("%v: %q, %v, want three locks", err, words, locks)
		}
		want := []string{"c", string(locks[2].Token), string(locks[2].Token), string(locks[0].Token), string(locks[1].Token)}
		if got := strings.Join(words, " "); got != strings.Join(want, " ") {
			t.Errorf("the command has %s, want %s", got, want)
		}
		if out := s.run(0, "ls").out.String(); out != "" {
			t.Errorf("locks %s are left, want none", out)
		}
	})
}

// The command stops when one of its locks is lost, and the others are free then.
func TestRunAlsoLost(t *testing.T) {
	s := newSite(t)
	p := s.holdStubborn("x", "--also", "y", "--ttl", "3s", "--grace", "1s")
	s.run(0, "break", "y", "--token", s.tokenHeld("y"), "--reason", "test")
	p.wants(123)
	if !strings.Contains(p.out.String(), "stopped\n") || !strings.Contains(p.err.String(), `"y" lost`) {
		t.Errorf("stdout %q, stderr %q, want text with %q and %q", p.out.String(), p.err.String(), "stopped\n", `"y" lost`)
	}
	s.run(0, "run", "x", "--also", "y", "--try", "--", "true")
	// What runs under one of the locks would wait for itself.
	if p := s.run(125, "run", "x", "--also", "y", "--", binary, "run", "y", "--", "true"); !strings.Contains(p.err.String(), "we run under") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "we run under")
	}
	if p := s.run(125, "run", "y", "--", binary, "run", "x", "--also", "y", "--", "true"); !strings.Contains(p.err.String(), "we run under") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "we run under")
	}
}

func TestRunKindUsage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ flags, says string }{
		{"--shared --exclusive", "exclude each other"},
		{"--shared --permits 2", "one kind of lock"},
		{"--permits 0", "at least one permit"},
		{"--permits -1", "at least one permit"},
		{"--weight 2", "goes with --permits"},
		{"--permits 2 --weight 3", "at most 2"},
		{"--permits 2 --weight 0", "at least one permit"},
		{"--also x", "twice"},
		{"--also y --also y", "twice"},
		{"--also {x}:token", "reserved"},
		{"--also=", "empty"},
	} {
		p := s.run(125, append(append([]string{"run", "x"}, strings.Fields(c.flags)...), "--", "true")...)
		if !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%s: %s, want text with %q", c.flags, p.err.String(), c.says)
		}
	}
}
