//go:build unix

package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A script acquires in one process and releases in another, on every store.
func TestAcquireAndRelease(t *testing.T) {
	everyStore(t, func(t *testing.T, s *site) {
		words := strings.Fields(s.run(0, "acquire", "x", "--ttl", "50s", "--purpose", "by hand").out.String())
		if len(words) != 2 {
			t.Fatalf("printed %q, want the owner and the token", words)
		}
		owner := words[0]
		var one map[string]any
		if err := json.Unmarshal([]byte(s.run(0, "show", "x", "--json").out.String()), &one); err != nil || one["owner"] != owner || one["purpose"] != "by hand" {
			t.Errorf("%v, %v, want the owner and the purpose \"by hand\"", one, err)
		}
		if shown := s.run(0, "show", "x").out.String(); !strings.Contains(shown, words[1]) {
			t.Errorf("%s\nwant the token %q", shown, words[1])
		}
		s.run(124, "run", "x", "--try", "--", "true")
		if p := s.run(124, "acquire", "x", "--try", "--ttl", "1s"); p.out.String() != "" || !strings.Contains(p.err.String(), "by hand") {
			t.Errorf("stdout %q, stderr %q, want nothing on stdout and text with %q", p.out.String(), p.err.String(), "by hand")
		}
		s.run(9, "acquire", "x", "--try", "--ttl", "1s", "-E", "9", "-q")
		s.run(124, "wait", "x", "--for", "0")
		s.run(123, "release", "x", "--owner", owner+"x")
		s.run(123, "release", "y", "--owner", owner)
		waiter := s.start("wait", "x")
		waiter.says(&waiter.err, ` for "x"; held by `)
		s.run(0, "release", "x", "--owner", owner)
		waiter.wants(0)
		if p := s.run(123, "release", "x", "--owner", owner); !strings.Contains(p.err.String(), "no longer had it") {
			t.Errorf("stderr %s, want text with %q", p.err.String(), "no longer had it")
		}
		var lease leaseJSON
		if err := json.Unmarshal([]byte(s.run(0, "acquire", "x", "--ttl", "50s", "--json").out.String()), &lease); err != nil ||
			lease.Name != "x" || lease.Token == 0 || time.Until(lease.ValidUntil) > 50*time.Second || time.Until(lease.ValidUntil) < -patience {
			t.Errorf("%+v, %v, want a token, and 50s at most", lease, err)
		}
		s.run(0, "release", "x", "--owner", lease.Owner)
		s.run(0, "run", "x", "--try", "--", "true")
	})
}

// A lease that is not released expires, and a waiter goes on.
func TestAcquiredLeaseEnds(t *testing.T) {
	everyStore(t, func(t *testing.T, s *site) {
		owner := strings.Fields(s.run(0, "acquire", "x", "--ttl", "1500ms").out.String())[0]
		s.run(0, "wait", "x")
		s.run(0, "acquire", "x", "--ttl", "20s")
		s.run(123, "release", "x", "--owner", owner)
		s.run(124, "wait", "x", "--for", "3s")
	})
}

// If the owner cannot be printed, the lease is released: only the printed owner could release it.
func TestAcquireThatCannotPrint(t *testing.T) {
	reader, unread, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	reader.Close()
	s := newSite(t)
	var says strings.Builder
	c := exec.Command(binary, "acquire", "x", "--ttl", "1h")
	c.Env, c.Stdout, c.Stderr = s.env, unread, &says
	if err := c.Run(); c.ProcessState.ExitCode() != codeTrouble || !strings.Contains(says.String(), "printing the owner") {
		t.Errorf("%v: %s, want exit code %d and \"printing the owner\"", err, says.String(), codeTrouble)
	}
	s.run(0, "run", "x", "--try", "--", "true")
}

// Go's runtime opens /dev/null for an output that is closed, and printing succeeds.
func TestAcquireWithoutAnOutput(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("known on Linux only")
	}
	s := newSite(t)
	p := s.exec("/bin/sh", "-c", `"$0" acquire x --ttl 1h >&-`, binary)
	p.wants(125)
	if !strings.Contains(p.err.String(), "standard output is closed") {
		t.Errorf("stderr %s, want that the output is closed", p.err.String())
	}
	s.run(0, "show", "x", "--exit-code")
	s.exec("/bin/sh", "-c", `"$0" acquire x --ttl 1h >/dev/null`, binary).wants(0)
}

// A lease that is renewed is not released behind its holder's back.
func TestReleaseOfALeaseThatIsRenewed(t *testing.T) { everyStore(t, releaseOfALeaseThatIsRenewed) }

func releaseOfALeaseThatIsRenewed(t *testing.T, s *site) {
	t.Helper()
	h := s.start("run", "x", "--ttl", "50s", "--", "/bin/sh", "-c", `echo $LEASEHOLD_OWNER; read x; exit 0`)
	h.says(&h.out, "\n")
	owner := strings.TrimSpace(h.out.String())
	p := s.run(124, "release", "x", "--owner", owner)
	if !strings.Contains(p.err.String(), "leasehold break") || !strings.Contains(p.err.String(), "(sh)") {
		t.Errorf("stderr %s, want who holds the lock, and what to do", p.err.String())
	}
	s.run(124, "show", "x", "--exit-code")
	s.run(0, "release", "x", "--owner", owner, "--now")
	s.run(0, "show", "x", "--exit-code")
	h.in.Close()
	h.wants(123)
	// A lease that had to wait is as well known as one that did not.
	first := strings.Fields(s.run(0, "acquire", "x", "--ttl", "50s").out.String())[0]
	second := s.start("acquire", "x", "--ttl", "50s")
	second.says(&second.err, "waiting")
	s.run(0, "release", "x", "--owner", first)
	second.wants(0)
	s.run(0, "release", "x", "--owner", strings.Fields(second.out.String())[0])
}

func TestAcquireIsInterrupted(t *testing.T) {
	s := newSite(t)
	h := s.hold("x")
	for _, args := range [][]string{{"acquire", "x", "--ttl", "1m"}, {"wait", "x"}} {
		p := s.start(args...)
		p.says(&p.err, "waiting")
		p.signal(syscall.SIGTERM)
		p.wants(143)
		if p.out.String() != "" {
			t.Errorf("%v printed %q, want nothing on stdout", args, p.out.String())
		}
	}
	p := s.run(124, "acquire", "x", "--ttl", "1m", "--wait", "700ms")
	if !strings.Contains(p.err.String(), "gave up after 700ms") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "gave up after 700ms")
	}
	p = s.run(124, "wait", "x", "--for", "700ms")
	if !strings.Contains(p.err.String(), "gave up after 700ms") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "gave up after 700ms")
	}
	// What runs under the lock would wait for itself.
	if p := s.run(124, "run", "y", "--", binary, "acquire", "y", "--try", "--ttl", "1m"); !strings.Contains(p.err.String(), "that we run under") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "that we run under")
	}
	h.let()
}

func TestAcquireUsage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ args, says string }{
		{"acquire", "give the name of a lock"},
		{"acquire x y --ttl 1m", "give the name of one lock, not 2"},
		{"acquire x", "give --ttl"},
		{"acquire x --ttl 1ms", "too short"},
		{"acquire x --ttl -1m", "too short"},
		{"acquire x --ttl 1m --try --wait 1s", "exclude each other"},
		{"acquire x --ttl 1m --wait -1s", "cannot be negative"},
		{"acquire x --ttl 1m --require much", "unknown class"},
		{"acquire x --ttl 1m -E 900", "not an exit code"},
		{"acquire {x}:token --ttl 1m", "reserved"},
		{"release x", "give --owner"},
		{"release x --owner=", "0 bytes"},
		{"release x y --owner z", "give the name of one lock, not 2"},
		{"release {x}:token --owner z", "reserved"},
		{"wait", "give the name of a lock"},
		{"wait x --for -1s", "cannot be negative"},
		{"wait {x}:token", "reserved"},
	} {
		if p := s.run(125, strings.Fields(c.args)...); !strings.Contains(p.err.String(), c.says) || p.out.String() != "" {
			t.Errorf("%s: stdout %q, stderr %q, want text with %q and nothing on stdout", c.args, p.out.String(), p.err.String(), c.says)
		}
	}
}

func TestCompleteOwner(t *testing.T) {
	s := newSite(t)
	var owner string
	for owner = "-"; owner[0] == '-'; { // a shell would take it for a flag
		owner = strings.Fields(s.run(0, "acquire", "x", "--ttl", "1m").out.String())[0]
		if owner[0] == '-' {
			s.run(0, "release", "x", "--owner", owner)
		}
	}
	if out := s.run(0, "__complete", "release", "x", "--owner", "").out.String(); !strings.HasPrefix(out, owner+"\n") {
		t.Errorf("%q, want %q at the beginning", out, owner+"\n")
	}
	if out := s.run(0, "__complete", "release", "").out.String(); !strings.HasPrefix(out, "x\n") {
		t.Errorf("%q, want %q at the beginning", out, "x\n")
	}
	if out := s.run(0, "__complete", "release", "y", "--owner", "").out.String(); !strings.HasPrefix(out, ":") {
		t.Errorf("%q, want %q at the beginning", out, ":")
	}
}
