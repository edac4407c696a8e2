//go:build unix

package cli

import (
	"strings"
	"testing"
)

// year is a period whose ticks do not change while a test runs, but once in ten years.
const year = "87600h"

// Of many machines that start a job, one runs it, and it is not run again in this tick.
func TestRunOncePer(t *testing.T) {
	s := newSite(t)
	var all []*proc
	for range 6 {
		all = append(all, s.start("run", "job", "--once-per", year, "--", "/bin/sh", "-c", "echo ran $LEASEHOLD_NAME; exit 3"))
	}
	ran := 0
	for _, p := range all {
		switch code := p.end(); {
		case code == 3 && p.out.String() == "ran job\n":
			ran++
		case code != 124 || p.out.String() != "":
			t.Errorf("exit code %d, stdout %q, stderr %q, want 124 and nothing on stdout", code, p.out.String(), p.err.String())
		}
	}
	if ran != 1 {
		t.Errorf("the job ran %d times, want once", ran)
	}
	if p := s.run(124, "run", "job", "--once-per", year, "--", "true"); !strings.Contains(p.err.String(), "has been run in this tick") || !strings.Contains(p.err.String(), " pid ") {
		t.Errorf("stderr %s, want text with %q and the process that did", p.err.String(), "has been run in this tick")
	}
	if p := s.run(0, "run", "job", "--once-per", year, "-E", "0", "-q", "--", "false"); p.err.String() != "" {
		t.Errorf("stderr %s, want nothing on stderr", p.err.String())
	}
}

// What runs now is named, and a run that takes too long is ended.
func TestRunOncePerBounds(t *testing.T) {
	s := newSite(t)
	h := s.hold("job", "--once-per", year)
	h.let()
	other := s.hold("two")
	if p := s.run(124, "run", "two", "--once-per", year, "--", "true"); !strings.Contains(p.err.String(), "another run of the job goes on") {
		t.Errorf("stderr %s, want text with %q", p.err.String(), "another run of the job goes on")
	}
	other.let()
	p := s.start("run", "two", "--once-per", year, "--max-hold", "3s", "--grace", "1s", "--", "/bin/sh", "-c", "trap 'echo told; exit 0' TERM; while :; do sleep 0.05; done")
	p.wants(123)
	if p.out.String() != "told\n" {
		t.Errorf("stdout %q, stderr %q, want %q", p.out.String(), p.err.String(), "told\n")
	}
	s.run(126, "run", "three", "--once-per", year, "--", s.home)
	s.run(0, "run", "three", "--once-per", year, "--", "true")
	if p := s.run(125, "run", "x", "--once-per", "5m", "--store", "memory:", "--", "true"); p.out.String() != "" {
		t.Errorf("stdout %s, want nothing on stdout", p.out.String())
	}
}

func TestRunOncePerUsage(t *testing.T) {
	s := newSite(t)
	for _, c := range []struct{ flags, says string }{
		{"--once-per 0s", "give the period"},
		{"--once-per -5m", "give the period"},
		{"--once-per 99ms", "the minimum is 100ms"},
		{"--once-per 5m --wait 1s", "exclude each other"},
		{"--once-per 5m --shared", "exclude each other"},
		{"--once-per 5m --permits 2", "exclude each other"},
		{"--once-per 5m --also y", "exclude each other"},
		{"--once-per 5m --min-hold 1m", "shorter than --once-per"},
		{"--once-per 5m --once-offset 5m", "less than --once-per"},
		{"--once-per 5m --once-offset -1m", "less than --once-per"},
		{"--once-offset 1m", "needs --once-per"},
		{"--once-per never", "is no time such as"},
	} {
		p := s.run(125, append(append([]string{"run", "x"}, strings.Fields(c.flags)...), "--", "true")...)
		if !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%s: %s, want text with %q", c.flags, p.err.String(), c.says)
		}
	}
}

// longTTLs checks that TTLs above a minute need no setting in the URL.
func longTTLs(t *testing.T, s *site) {
	t.Helper()
	s.run(0, "acquire", "deploy", "--ttl", "10m")
	s.run(0, "run", "tick", "--once-per", "5m", "--", "true")
}
