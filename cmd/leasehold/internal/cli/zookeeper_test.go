//go:build unix

package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/internal/testenv/zktest"
)

// The commands work on ZooKeeper for the user for whom the ACL is set, and not for others.
func TestZooKeeper(t *testing.T) {
	t.Parallel()
	// With so long a tick, doctor finds no machine too slow.
	server, err := zktest.Launch(zktest.Options{Tick: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	at := func(who string) *site { return newSite(t, storeVar+"=zookeeper://"+who+server.Addr+"/apps/guarded") }

	p := newSite(t, storeVar+"=zookeeper://u:secretword@h/apps/guarded?reader=world:anyone").run(0, "acl")
	if strings.Contains(p.out.String()+p.err.String(), "secretword") {
		t.Errorf("acl of a store: %s%swant no password", &p.out, &p.err)
	}
	if out, err := server.Type(strings.ReplaceAll(p.out.String(), "PASSWORD", "secretword")); err != nil {
		t.Fatalf("ZooKeeper's client: %v\n%s", err, out)
	}
	owner := at("u:secretword@")
	p = owner.start("run", "a/b", "--require", "crash-safe", "--", binary, "show", "a/b", "--json")
	if code := p.end(); code != 0 || !strings.Contains(strings.ReplaceAll(p.out.String(), " ", ""), `"held":true`) {
		t.Errorf("run and show: exit code %d: %s%s, want exit code %d and text with %q", code, &p.out, &p.err, 0, `"held":true`)
	}
	p = owner.start("run", "a/b", "--", binary, "ls", "a/")
	if code := p.end(); code != 0 || !strings.Contains(p.out.String(), "a/b") {
		t.Errorf("run and ls: exit code %d: %s%s, want exit code %d and text with %q", code, &p.out, &p.err, 0, "a/b")
	}
	if codes, said := owner.doctor(0); codes["zookeeper-few-members"] == "" || codes["zookeeper-open"]+codes["zookeeper-tick"]+codes["zookeeper-unusable"] != "" {
		t.Errorf("doctor: %s, want the finding zookeeper-few-members and no finding zookeeper-open, zookeeper-tick, zookeeper-unusable", said)
	}
	stranger := at("")
	p = stranger.start("run", "a/b", "--", "true")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "cdrwa") {
		t.Errorf("run without an identity: exit code %d: %s, want exit code %d and text with %q", code, &p.err, codeTrouble, "cdrwa")
	}
	if codes, said := stranger.doctor(2); codes["zookeeper-unusable"] == "" {
		t.Errorf("doctor without an identity: %s, want the finding zookeeper-unusable", said)
	}
	// The owner of other locks has no rights to these, and the other way round.
	other := newSite(t, storeVar+"=zookeeper://other:otherword@"+server.Addr+"/apps/other").run(0, "acl")
	if out, err := server.Type(strings.ReplaceAll(other.out.String(), "PASSWORD", "otherword")); err != nil {
		t.Fatalf("ZooKeeper's client: %v\n%s", err, out)
	}
	newSite(t, storeVar+"=zookeeper://other:otherword@"+server.Addr+"/apps/other").run(0, "run", "a", "--", "true")
	p = newSite(t, storeVar+"=zookeeper://u:secretword@"+server.Addr+"/apps/other").start("run", "a", "--", "true")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "cdrwa") {
		t.Errorf("run in a node of another user: exit code %d: %s, want exit code %d and text with %q", code, &p.err, codeTrouble, "cdrwa")
	}
	p = at("u:secretword@").start("run", "--require", "consensus", "a/b", "--", "true")
	if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "crash-safe") || strings.Contains(p.err.String(), "secretword") {
		t.Errorf("one server, and consensus is required: exit code %d: %s, want exit code %d, text with %q and no %q", code, &p.err, codeTrouble, "crash-safe", "secretword")
	}
	for _, wrong := range [][]string{{"--user", "a:b"}, {"--prefix", "x"}, {"--for", "ls"}, {"--store", "zookeeper://h/a b"}, {"--store", "zookeeper://h/a?reader=x"}} {
		newSite(t, storeVar+"=zookeeper://h/a").run(codeTrouble, append([]string{"acl"}, wrong...)...)
	}
}

// Processes that contend for locks in ZooKeeper, and are stopped and killed meanwhile,
// never hold a lock at the same time.
func TestTortureOfZooKeeper(t *testing.T) {
	t.Parallel()
	server, err := zktest.Launch(zktest.Options{Tick: 500 * time.Millisecond, Settings: []string{"maxSessionTimeout=40000"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s := newSite(t, storeVar+"=zookeeper://"+server.Addr)
	p := s.run(0, "lab", "torture", "--procs", "4", "--locks", "2", "--for", "6s", "--ttl", "1s", "--out", filepath.Join(t.TempDir(), "history"))
	if last := lastLineOf(p.out.String()); !strings.HasPrefix(last, "PASS: 0 violations") {
		t.Errorf("torture: %s%s, want %q at the beginning of the last line", &p.out, &p.err, "PASS: 0 violations")
	}
}
