//go:build unix

package cli

import (
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// The command works on a cluster with the rights that acl prints for it, refuses a class
// that a cluster cannot give, and refuses what works only on other stores.
func TestClusterStore(t *testing.T) {
	t.Parallel() // it mostly waits
	c := redistest.StartCluster(t, 3, 0)
	line := newSite(t).run(0, "acl", "-q", "--cluster", "--user", "u", "--prefix", "jobs/", "--for", "lock,ls,doctor").out.String()
	for _, server := range c.Masters {
		redisCLI(t, server, strings.Replace(strings.TrimSpace(line), "PASSWORD", "pw", 1))
	}
	at := newSite(t, storeVar+"=redis-cluster://u:pw@"+c.Masters[1].Addr()+patiently)
	for _, name := range []string{"jobs/1", "jobs/2", "jobs/3", "jobs/{4}"} {
		p := at.run(0, "run", name, "--", "sh", "-c", "echo $LEASEHOLD_NAME $LEASEHOLD_TOKEN")
		if !strings.HasPrefix(p.out.String(), name+" ") {
			t.Errorf("%s: %s, want %q at the beginning", name, p.out.String(), name+" ")
		}
		if p := at.run(0, "show", name); !strings.Contains(p.out.String(), "nobody") {
			t.Errorf("show %s: %s, want text with %q", name, p.out.String(), "nobody")
		}
	}
	at.run(0, "ls", "jobs/")
	if p := at.run(125, "run", "--require", "crash-safe", "jobs/1", "--", "true"); !strings.Contains(p.err.String(), "efficiency") {
		t.Errorf("crash-safe: %s, want text with %q", p.err.String(), "efficiency")
	}
	for _, command := range []string{"bootstrap", "replace"} {
		if p := at.run(125, command); !strings.Contains(p.err.String(), command+" is for redis://") {
			t.Errorf("%s: %s, want text with %q", command, p.err.String(), command+" is for redis://")
		}
	}
	if codes, said := at.doctor(1, "--prefix", "jobs/"); codes["persistence-none"] == "" || codes["cluster"]+codes["right-missing"]+codes["waiters-poll"]+codes["config-forbidden"]+codes["keys-not-seen"] != "" {
		t.Errorf("doctor: %s, want the finding persistence-none and no finding cluster, right-missing, waiters-poll, config-forbidden, keys-not-seen", said)
	}
	if p := at.run(0, "help", "stores"); !strings.Contains(p.out.String(), "redis-cluster://") {
		t.Errorf("the help: %s, want text with %q", p.out.String(), "redis-cluster://")
	}
}
