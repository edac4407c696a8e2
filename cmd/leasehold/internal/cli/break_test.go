//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/statejson"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// tokenHeld returns the token of the lock's holder.
func (s *site) tokenHeld(name string) string {
	s.t.Helper()
	var one statejson.State
	one.Lease = &statejson.Lease{}
	if err := json.Unmarshal([]byte(s.run(0, "show", name, "--json").out.String()), &one); err != nil || !one.Held {
		s.t.Fatalf("%s is not held: %v, want it held", name, err)
	}
	return one.Token.String()
}

// holdStubborn holds a lock with a command that reports SIGTERM and takes a while to end.
func (s *site) holdStubborn(name string, flags ...string) *proc {
	s.t.Helper()
	p := s.start(append(append([]string{"run", name}, flags...), "--", "/bin/sh", "-c",
		`trap 'echo told; sleep 0.2; echo stopped; exit 0' TERM; echo held; while :; do sleep 0.05; done`)...)
	p.says(&p.out, "held\n")
	return p
}

// A holder learns of the break and stops before the next one has the lock, on every store. Only the
// lease that was shown is broken.
func TestBreakOnEveryStore(t *testing.T) { everyStore(t, breakReachesTheHolder) }

func breakReachesTheHolder(t *testing.T, s *site) {
	t.Helper()
	h := s.holdStubborn("x", "--ttl", "6s", "--grace", "3s")
	token := s.tokenHeld("x")
	wrong, err := strconv.ParseUint(token, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p := s.run(124, "break", "x", "--token", strconv.FormatUint(wrong+1, 10), "--reason", "a mistake", "--now")
	if !strings.Contains(p.err.String(), "with token "+token) {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "with token "+token)
	}
	if show := s.run(0, "show", "x").out.String(); strings.Contains(show, "broken") {
		t.Errorf("after a break with a wrong token:\n%s\nwant no %q", show, "broken")
	}
	next := s.start("run", "x", "--", "echo", "next")
	next.says(&next.err, "waiting")
	one := s.start("break", "x", "--token", token, "--reason", "it hangs", "--by", "the operator")
	two := s.start("break", "x", "--token", token, "--reason", "yes, it does")
	succeeded := 0
	for _, b := range []*proc{one, two} {
		switch code := b.end(); {
		case code == 0:
			succeeded++
		case code != 124 || !strings.Contains(b.err.String(), "(echo)"):
			t.Errorf("break: exit code %d, stderr %s, want 0, or 124 if the next holder was there before it", code, b.err.String())
		}
	}
	if succeeded == 0 {
		t.Error("none of two breaks succeeded, want one at least")
	}
	if out := h.out.String(); !strings.Contains(out, "told\n") || !strings.Contains(out, "stopped\n") {
		t.Errorf("Break returned before the command had stopped: %q, want text with %q and %q", out, "told\n", "stopped\n")
	}
	h.wants(123)
	if said := h.err.String(); !strings.Contains(said, "broken by ") || !strings.Contains(said, "it hangs") && !strings.Contains(said, "yes, it does") {
		t.Errorf("the holder was told %q, want by whom and why", said)
	}
	next.wants(0)
	show := s.run(0, "show", "x").out.String()
	if !strings.Contains(show, "an earlier lease (token "+token+")") || !strings.Contains(show, "it hangs") && !strings.Contains(show, "yes, it does") {
		t.Errorf("show:\n%s\nwant the broken lease and one of the two reasons", show)
	}
	s.run(0, "break", "x", "--token", token, "--reason", "again")
}

// breakIsPushedForEveryKind breaks leases of a mutex, a reader and a permit. The next renewal
// of their holders would be due after 20 minutes.
func breakIsPushedForEveryKind(t *testing.T, s *site) {
	t.Helper()
	for i, flags := range [][]string{nil, {"--shared"}, {"--permits", "2"}} {
		name := fmt.Sprint("told", i)
		h := s.holdStubborn(name, append(flags, "--ttl", "1h")...)
		s.run(0, "break", name, "--token", s.tokenHeld(name), "--reason", "it hangs")
		h.wants(123)
		if !strings.Contains(h.err.String(), ": it hangs") {
			t.Errorf("%v: the holder was told %q, want why the lease was broken", flags, h.err.String())
		}
		if out := h.out.String(); !strings.Contains(out, "told\nstopped\n") {
			t.Errorf("%v: the holder wrote %q, want told and stopped", flags, out)
		}
	}
}

// In a file and over Redis the holder learns of the break at once, without waiting for its
// next renewal, which is due after 200 seconds.
func TestBreakIsPushed(t *testing.T) {
	t.Parallel() // it mostly waits
	const longer = "?max_ttl=10m"
	redis := func(servers int) func(t *testing.T) string {
		return func(t *testing.T) string { return "redis://" + addresses(redistest.StartN(t, servers)) + longer }
	}
	for what, url := range map[string]func(t *testing.T) string{
		"one server": redis(1),
		"a majority": redis(3),
		"a cluster": func(t *testing.T) string {
			return "redis-cluster://" + addresses(redistest.StartCluster(t, 3, 0).Masters) + longer
		},
		"a lock folder": func(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "locks") },
	} {
		t.Run(what, func(t *testing.T) {
			s := newSite(t, storeVar+"="+url(t))
			h := s.holdStubborn("x", "--ttl", "10m")
			next := s.start("run", "x", "--", "echo", "next")
			next.says(&next.err, "waiting")
			s.run(0, "break", "x", "--token", s.tokenHeld("x"), "--reason", "it hangs")
			h.wants(123)
			if out := h.out.String(); !strings.Contains(out, "told\nstopped\n") {
				t.Errorf("the holder printed %q, want text with %q", out, "told\nstopped\n")
			}
			next.wants(0)
		})
	}
}

// A holder that does not answer keeps the lock until its lease expires, or until it is
// broken with --now.
func TestBreakOfASilentHolder(t *testing.T) { everyStore(t, breakOfASilentHolder) }

func breakOfASilentHolder(t *testing.T, s *site) {
	t.Helper()
	lease := strings.Fields(s.run(0, "acquire", "x", "--ttl", "50s").out.String())
	p := s.start("break", "x", "--token", lease[1], "--reason", "a mistake")
	p.says(&p.err, "cannot be renewed any more")
	p.signal(syscall.SIGINT)
	p.wants(130)
	if show := s.run(0, "show", "x").out.String(); !strings.Contains(show, "this lease (token "+lease[1]+")") || !strings.Contains(show, "it was broken") {
		t.Errorf("%s, want text with %q and %q", show, "this lease (token "+lease[1]+")", "it was broken")
	}
	s.run(124, "run", "x", "--try", "--", "true")
	next := s.start("acquire", "x", "--ttl", "50s")
	next.says(&next.err, "waiting")
	s.run(0, "break", "x", "--token", lease[1], "--reason", "its host is gone", "--now")
	next.wants(0)
	if p := s.run(123, "release", "x", "--owner", lease[0]); !strings.Contains(p.err.String(), ": a mistake") {
		t.Errorf("release of a broken lease: %s, want why it was broken", p.err.String())
	}
	if token := strings.Fields(next.out.String())[1]; s.tokenHeld("x") != token {
		t.Errorf("show has token %[2]s, want %[1]s, that of the grant", token, s.tokenHeld("x"))
	}
	s.run(123, "release", "x", "--owner", lease[0])
	s.run(124, "break", "x", "--token", lease[1], "--reason", "once more", "--now")

	start := time.Now()
	dead := strings.Fields(s.run(0, "acquire", "y", "--ttl", "2s").out.String())
	s.run(0, "break", "y", "--token", dead[1], "--reason", "its host is gone")
	if lasted := time.Since(start); lasted < 1900*time.Millisecond {
		t.Errorf("the lease of a silent holder was over after %v, want its 2s", lasted)
	}
	s.run(0, "run", "y", "--try", "--", "true")
}

func TestBreakUsage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ args, says string }{
		{"break", "give the name of a lock"},
		{"break x y", "give the name of one lock, not 2"},
		{"break x --reason r", "give --token"},
		{"break x --token 0 --reason r", "give --token"},
		{"break x --token 7", "give --reason"},
		{"break x --token seven --reason r", "not a whole number"},
		{"break x --token -1 --reason r", "not a whole number"},
		{"break {x}:token --token 1 --reason r", "reserved"},
		{"break x --token 7 --reason " + strings.Repeat("x", 1025), "1024 bytes"},
	} {
		if p := s.run(125, strings.Fields(c.args)...); !strings.Contains(p.err.String(), c.says) || p.out.String() != "" {
			t.Errorf("%.40s: stdout %q, stderr %q, want text with %q and nothing on stdout", c.args, p.out.String(), p.err.String(), c.says)
		}
	}
	if p := s.run(123, "break", "x", "--token", "7", "--reason", "nobody holds it"); !strings.Contains(p.err.String(), `nobody holds lock "x"`) {
		t.Errorf("stderr %q, want that nobody holds it", p.err.String())
	}
	s.run(0, "acquire", "x", "--ttl", "1m")
	if out := s.run(0, "__complete", "break", "x", "--token", "").out.String(); !strings.HasPrefix(out, s.tokenHeld("x")+"\n") {
		t.Errorf("%q, want %q at the beginning", out, s.tokenHeld("x")+"\n")
	}
}
