//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
)

// launchEtcd starts one member of the current version, which ends with the test.
func launchEtcd(t *testing.T) *etcdtest.Cluster {
	t.Helper()
	program, err := etcdtest.Current()
	if err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The commands work on an etcd cluster: they lock, list, show and examine.
func TestEtcd(t *testing.T) {
	t.Parallel() // it mostly waits
	c := launchEtcd(t)
	at := "LEASEHOLD_STORE=etcd://" + c.Endpoints()[0]
	s := newSite(t, at+"/jobs")
	s.run(0, "run", "a/b", "--require", "crash-safe", "--", "true")
	p := s.start("run", "a/b", "--require", "consensus", "--", "true")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "crash-safe at most") {
		t.Errorf("run with a class that one member cannot give: exit code %d: %s, want exit code %d and text with %q", code, &p.err, codeTrouble, "crash-safe at most")
	}
	p = s.start("doctor")
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "etcd-few-members") {
		t.Errorf("doctor: exit code %d:\n%s%s, want exit code %d and text with %q", code, &p.out, &p.err, 0, "etcd-few-members")
	}
	c.Members[0].Kill()
	p = newSite(t, at+"?timeout=1s").start("doctor")
	if code := p.end(); code != 2 || !strings.Contains(p.out.String(), "etcd-unusable") {
		t.Errorf("doctor without a server: exit code %d:\n%s%s, want exit code %d and text with %q", code, &p.out, &p.err, 2, "etcd-unusable")
	}
	wrong := newSite(t, "LEASEHOLD_STORE=etcd://me:secretword@"+c.Endpoints()[0]+"?timeout=1s")
	p = wrong.start("ls")
	if code := p.end(); code != codeTrouble || strings.Contains(p.err.String(), "secretword") {
		t.Errorf("ls without a server: exit code %d: %s, want exit code %d and no %q", code, &p.err, codeTrouble, "secretword")
	}
}
