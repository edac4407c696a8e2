//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

func TestSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	w := redistest.StartWatched(t, 2)
	s := newSite(t, storeVar+"="+w.URL())
	h := s.hold("x")
	s.run(124, "run", "x", "--try", "--", "true")
	if v := w.Master.Text(t, "GET", "x"); v == "(nil)" {
		t.Error("the master does not have the lock, want it there")
	}
	if out := s.run(0, "ls", "--json").out.String(); !strings.Contains(out, `"name": "x"`) {
		t.Errorf("stdout %s, want text with %q", out, `"name": "x"`)
	}
	if out := s.run(0, "show", "x").out.String(); !strings.Contains(out, "x") {
		t.Errorf("stdout %s, want text with %q", out, "x")
	}
	h.let()
	if p := s.run(0, "run", "x", "--", "true"); strings.Count(p.err.String(), "warning") != 1 || !strings.Contains(p.err.String(), "failover can lose locks") {
		t.Errorf("stderr %q, want one warning", p.err.String())
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"run", "x", "--require", "crash-safe", "--", "true"}, "efficiency at most"},
		{[]string{"bootstrap"}, "bootstrap is for redis://"},
		{[]string{"replace"}, "replace is for redis://"},
		{[]string{"ls", "--store", "redis-sentinel://" + w.Sentinels[0].Addr()}, "master="},
		{[]string{"ls", "--store", "redis-sentinel://" + w.Sentinels[0].Addr() + "?master=cache"}, `knows no master "cache"`},
	} {
		if p := s.run(125, c.args...); !strings.Contains(p.err.String(), c.says) {
			t.Errorf("%v: %q, want %q", c.args, p.err.String(), c.says)
		}
	}
	if p := s.run(0, "ls", "--store", w.URL()+"&sentinel_password="); strings.Contains(p.err.String(), "everybody") {
		t.Errorf("stderr %q, want no %q", p.err.String(), "everybody")
	}
	p := s.run(125, "ls", "--store", w.URL()+"&sentinel_password=s3cr3t")
	if text := p.err.String(); !strings.Contains(text, "all users of this machine can see the password") || !strings.Contains(text, "remove sentinel_password") || strings.Contains(text, "s3cr3t") {
		t.Errorf("stderr %q, want text with %q and %q and no %q", text, "all users of this machine can see the password", "remove sentinel_password", "s3cr3t")
	}
	if out := s.run(0, "help", "stores").out.String(); !strings.Contains(out, "redis-sentinel://USER:PASSWORD@SENTINEL:PORT") {
		t.Errorf("stdout %s, want text with %q", out, "redis-sentinel://USER:PASSWORD@SENTINEL:PORT")
	}
}

// The findings are about the master and about the sentinels.
func TestDoctorOfSentinels(t *testing.T) {
	t.Parallel() // it mostly waits
	sure := []string{"--appendonly", "yes", "--appendfsync", "always"}
	w := redistest.Watch(t, redistest.Start(t, sure...), 2, sure)
	s := newSite(t)
	url := w.URL() + "&connect_timeout=5s&node_timeout=5s"
	codes, said := s.doctor(1, "--store", url)
	if len(codes) != 1 || codes["replicated"] != "warning" || !strings.Contains(said, w.Master.Addr()) {
		t.Errorf("%s, want only the finding replicated (warning), of the master", said)
	}
	w.Sentinels[1].Kill()
	if codes, said = s.doctor(1, "--store", url); len(codes) != 2 || codes["sentinel-silent"] != "warning" || !strings.Contains(said, w.Sentinels[1].Addr()) {
		t.Errorf("%s, want the findings replicated and sentinel-silent (warning), of the second sentinel", said)
	}
	w.Sentinels[0].Kill()
	if codes, said = s.doctor(2, "--store", url); codes["node-unreachable"] != "error" || !strings.Contains(said, "no sentinel names") {
		t.Errorf("%s, want the finding node-unreachable (error) and text with %q", said, "no sentinel names")
	}
}
