//go:build unix

package cli

import (
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// candidate starts a candidate whose command says that it leads, and reports SIGTERM.
func (s *site) candidate(name string, flags ...string) *proc {
	s.t.Helper()
	return s.start(append(append([]string{"elect", name}, flags...), "--", "/bin/sh", "-c",
		`trap 'echo told; exit 7' TERM; echo leads $LEASEHOLD_TOKEN; while :; do sleep 0.05; done`)...)
}

// terms counts how often p has led.
func terms(p *proc) int { return strings.Count(p.out.String(), "leads") }

// led waits until p has led for the n-th time.
func (p *proc) led(n int) {
	p.t.Helper()
	poll(p.t, func() string {
		if terms(p) >= n {
			return ""
		}
		return "a candidate to lead: " + p.out.String() + p.err.String()
	})
}

// One candidate runs its command. When it is asked to end it resigns, and the next leads
// before the lease would have ended; when it loses it stops its command first, and contends again.
func TestElect(t *testing.T) {
	everyStore(t, func(t *testing.T, s *site) {
		watch := s.start("watch", "x", "--every", "20ms", "--json")
		watch.says(&watch.out, `"event":"free"`)
		first := s.candidate("x", "--ttl", "1m", "--purpose", "first")
		first.led(1)
		second := s.candidate("x", "--ttl", "1m", "--purpose", "second")
		second.says(&second.err, "held by")
		start := time.Now()
		first.signal(syscall.SIGTERM)
		first.wants(7)
		second.led(1)
		// The lease was renewed at most 20 s before, so without the release it lasts 40 s.
		if took := time.Since(start); !strings.HasSuffix(first.out.String(), "told\n") || terms(first) != 1 || took > 35*time.Second {
			t.Errorf("after %v: %q, want one signal, reported last, and the next leader before the lease ends", took, first.out.String())
		}
		third := s.candidate("x", "--ttl", "1m", "--purpose", "third")
		third.says(&third.err, "held by")
		third.signal(syscall.SIGINT)
		third.wants(130)
		if third.out.String() != "" {
			t.Errorf("an interrupted candidate printed %q, want nothing on stdout", third.out.String())
		}
		second.signal(syscall.SIGTERM)
		second.wants(7)
		poll(t, func() string {
			var seen []string
			for line := range strings.Lines(watch.out.String()) {
				var c struct{ Event, Purpose string }
				if json.Unmarshal([]byte(line), &c) != nil {
					break // it is being written
				}
				seen = append(seen, strings.TrimSpace(c.Event+" "+c.Purpose))
			}
			got := strings.ReplaceAll(strings.Join(seen, ", "), ", free, acquired", ", acquired") // it may be seen in between
			if got == "free, acquired first, over first, acquired second, over second, free" {
				return ""
			}
			return "changes: " + strings.Join(seen, ", ")
		})
		watch.signal(syscall.SIGTERM)
		watch.end()
	})
}

// A leader whose lease is lost stops its command, and leads again later.
func TestElectAfterALoss(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newSite(t)
	one := s.candidate("x", "--ttl", "3s")
	one.led(1)
	two := s.candidate("x", "--ttl", "3s")
	two.says(&two.err, "waiting")
	s.run(0, "break", "x", "--token", s.tokenHeld("x"), "--reason", "test")
	two.led(1)
	if out := one.out.String(); !strings.HasSuffix(out, "told\n") {
		t.Errorf("the second leads, and the first has said %q, want %q at the end", out, "told\n")
	}
	one.says(&one.err, "contending again in ")
	if said := one.err.String(); strings.Contains(said, "warning") || strings.Count(said, "lost: ") != 2 {
		t.Errorf("want the loss when the command is stopped, and when the candidate contends again: %s", said)
	}
	// A leader that is killed has its command killed with it, and is followed after its TTL.
	two.cmd.Process.Kill()
	two.end()
	one.led(2)
	// A leader that is stopped is followed after its TTL, too.
	three := s.candidate("x", "--ttl", "3s")
	three.says(&three.err, "waiting")
	one.freeze()
	three.led(1)
	one.signal(syscall.SIGCONT)
	one.says(&one.err, "contending again in ")
	three.signal(syscall.SIGTERM)
	three.wants(7)
	one.led(3)
	one.signal(syscall.SIGTERM)
	one.wants(7)
}

// A command that ends by itself is started again, here or elsewhere, after a pause.
func TestElectAgain(t *testing.T) {
	s := newSite(t)
	p := s.start("elect", "x", "--", "/bin/sh", "-c", "echo leads; exit 3")
	p.led(3)
	if !strings.Contains(p.err.String(), "leasehold: the command ended by itself, with exit code 3: contending again in ") || strings.Contains(p.out.String(), "waiting") {
		t.Errorf("%s, want the end of the command, and no signs of waiting", p.err.String())
	}
	other := s.candidate("x")
	other.led(1)
	p.says(&p.err, "held by")
	p.signal(syscall.SIGTERM)
	p.wants(143)
	other.signal(syscall.SIGTERM)
	other.wants(7)
	// A command that Ctrl-C has killed is not started again.
	p = s.start("elect", "x", "--", "/bin/sh", "-c", "echo leads; kill -INT $$")
	p.wants(130)
	if terms(p) != 1 {
		t.Errorf("led %d times, want once", terms(p))
	}
}

func TestElectUsage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, c := range []struct {
		args string
		code int
		says string
	}{
		{"elect x", 125, "leasehold elect NAME -- command args"},
		{"elect x --", 125, "no command"},
		{"elect x y -- true", 125, "give the name of one lock"},
		{"elect x --try -- true", 125, "there is no flag --try"},
		{"elect x --ttl 1ms -- true", 125, "too short"},
		{"elect x --grace 20s -- true", 125, "more than half"},
		{"elect {x}:token -- true", 125, "reserved"},
		{"elect x --require consensus -- true", 125, "consensus"},
		{"elect x -- no-such-command", 127, "command not found"},
		{"elect x -- /", 126, "cannot be run"},
		{"watch", 125, "give the name of a lock"},
		{"watch x --every 1ms", 125, "too often"},
		{"watch {x}:token", 125, "reserved"},
	} {
		if p := s.run(c.code, strings.Fields(c.args)...); !strings.Contains(p.err.String(), c.says) || p.out.String() != "" {
			t.Errorf("%s: stdout %q, stderr %q, want text with %q and nothing on stdout", c.args, p.out.String(), p.err.String(), c.says)
		}
	}
	if p := s.run(125, "run", "x", "--", binary, "elect", "x", "--", "true"); !strings.Contains(p.err.String(), "we run under") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "we run under")
	}
	s.run(0, "acquire", "s", "--permits", "2", "--ttl", "1m")
	if p := s.run(125, "elect", "s", "--", "true"); !strings.Contains(p.err.String(), "semaphore of 2") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "semaphore of 2")
	}
}

// Every holder of a lock is watched.
func TestWatchSeveral(t *testing.T) {
	s := newSite(t)
	one := s.hold("x", "--permits", "2", "--purpose", "one")
	w := s.start("watch", "x", "--every", "20ms")
	w.says(&w.out, "  held")
	two := s.hold("x", "--permits", "2", "--purpose", "two")
	w.says(&w.out, "(two), token ")
	one.let()
	two.let()
	w.says(&w.out, "free\n")
	w.signal(syscall.SIGTERM)
	w.end()
	var seen []string
	for line := range strings.Lines(w.out.String()) {
		seen = append(seen, strings.Fields(line)[1])
	}
	if got := strings.Join(seen, " "); got != "held acquired over over free" || !strings.Contains(w.out.String(), ", slot 1, 1 of 2 permits\n") {
		t.Errorf("events %s, want held acquired over over free, with slot 1:\n%s", got, w.out.String())
	}
}

// SIGHUP asks a service to read its configuration again. It does not end a candidacy, unless
// the command dies of it.
func TestElectOutlivesSIGHUP(t *testing.T) {
	setsid, err := exec.LookPath("setsid") // away from a terminal that the test may have
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t)
	h := s.hold("x")
	p := s.exec(setsid, binary, "elect", "x", "--", "/bin/sh", "-c", `trap 'echo reload' HUP; echo leads; until read y; do :; done; exit $y`)
	p.says(&p.err, ` for "x"`)
	p.signal(syscall.SIGHUP)
	p.says(&p.err, `still a candidate of "x"`)
	h.let()
	p.says(&p.out, "leads\n")
	p.signal(syscall.SIGHUP)
	p.says(&p.out, "reload\n")
	p.in.Write([]byte("7\n"))
	p.says(&p.err, "contending again")
	p.says(&p.out, "reload\nleads\n")
	p.signal(syscall.SIGTERM)
	p.wants(128 + int(syscall.SIGTERM))

	p = s.exec(setsid, binary, "elect", "x", "--", "/bin/sh", "-c", `echo leads; read y`)
	p.says(&p.out, "leads\n")
	p.signal(syscall.SIGHUP)
	p.wants(128 + int(syscall.SIGHUP))
}
