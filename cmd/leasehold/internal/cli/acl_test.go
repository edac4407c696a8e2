//go:build unix

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/etcdtest"
	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
	"github.com/leasehold-dev/leasehold/store/kubernetesstore"
)

// redisCLI makes redis-cli read one line, as an operator would type it.
func redisCLI(t *testing.T, server *redistest.Server, line string) {
	t.Helper()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		if path, err = exec.LookPath("valkey-cli"); err != nil {
			t.Fatal("neither redis-cli nor valkey-cli is installed; they come with redis-tools (Debian) or the server")
		}
	}
	host, port, _ := strings.Cut(server.Addr(), ":")
	c := exec.Command(path, "-h", host, "-p", port)
	c.Stdin = strings.NewReader(line + "\n")
	if out, err := c.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "OK" {
		t.Fatalf("%s\n%s%v, want OK", line, out, err)
	}
}

// The rule can be given to redis-cli as it is, and the command works with it.
func TestACLIsAcceptedByRedis(t *testing.T) {
	t.Parallel()
	servers := redistest.StartN(t, 3)
	s := newSite(t)
	for _, prefix := range []string{"jobs/", "a b*", `q"\'`, "grün", ""} {
		p := s.run(0, "acl", "--user", "u", "--prefix", prefix, "--for", "lock,doctor", "--db", "0")
		line := p.out.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(p.err.String(), "PASSWORD") {
			t.Errorf("stdout %q, stderr %q, want one line, and the word PASSWORD on stderr", line, p.err.String())
		}
		for _, server := range servers {
			redisCLI(t, server, strings.Replace(strings.TrimSpace(line), "PASSWORD", "pw", 1))
		}
		at := newSite(t, storeVar+"=redis://u:pw@"+addresses(servers)+patiently)
		at.run(0, "run", prefix+"1", "--", "true")
		if codes, said := at.doctor(1, "--prefix", prefix); codes["same-host"] == "" || codes["info-forbidden"]+codes["config-forbidden"]+codes["keys-not-seen"] != "" {
			t.Errorf("%q: %s, want the finding same-host and no finding info-forbidden, config-forbidden, keys-not-seen", prefix, said)
		}
	}
}

// The rights for Kubernetes are those that the store says, by what they are for.
func TestACLOfKubernetes(t *testing.T) {
	s := newSite(t, storeVar+"=kubernetes://jobs").plain()
	for args, use := range map[string]kubernetesstore.Use{
		"acl --user app":            kubernetesstore.ToLock,
		"acl --user app --for show": kubernetesstore.ToShow,
		"acl --user app --for ls":   kubernetesstore.ToList,
	} {
		want, err := kubernetesstore.Rights("kubernetes://jobs", "app", use)
		if p := s.run(0, strings.Fields(args)...); err != nil || p.out.String() != want {
			t.Errorf("%s: %s\nwant %s, %v", args, p.out.String(), want, err)
		}
	}
	for _, args := range []string{"acl --for bootstrap", "acl --prefix x", "acl --user A"} {
		s.run(codeTrouble, strings.Fields(args)...)
	}
}

// The commands for a store in etcd can be given to a shell as they are, and the user that
// they make can use those locks and nothing else.
func TestACLOfEtcd(t *testing.T) {
	t.Parallel()
	program, err := etcdtest.Installed()
	if err != nil {
		t.Fatal(err)
	}
	c, err := etcdtest.Launch(etcdtest.Options{Program: program, Args: []string{"--bcrypt-cost=4"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	// etcdctl runs a line of a shell as a user would, whose input is the password.
	etcdctl := func(line string) (string, error) {
		cmd := exec.Command("/bin/sh", "-eu", "-c", line)
		cmd.Env = append(os.Environ(), "ETCDCTL_API=3", "ETCDCTL_ENDPOINTS="+c.Endpoints()[0])
		cmd.Stdin = strings.NewReader("secretword\n")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(line string) {
		t.Helper()
		// etcdctl asks on a terminal unless it gets this flag.
		if out, err := etcdctl(strings.Replace(line, " user add ", " user add --interactive=false ", 1)); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	at := storeVar + "=etcd://%s" + c.Endpoints()[0] + "/it's"
	site := func(who string) *site { return newSite(t, fmt.Sprintf(at, who)) }
	must("etcdctl user add root")
	must("etcdctl user grant-role root root")
	for user, args := range map[string][]string{"me": {"--prefix", "jobs/"}, "viewer": {"--user", "viewer", "--for", "ls", "--prefix", "jobs/"}, "doctor": {"--for", "doctor"}} {
		p := site(user+":secretword@").run(0, append([]string{"acl"}, args...)...)
		if strings.Contains(p.out.String()+p.err.String(), "secretword") || !strings.Contains(p.err.String(), "auth enable") {
			t.Errorf("acl: %s%s, want no %q and text with %q", &p.out, &p.err, "secretword", "auth enable")
		}
		for line := range strings.Lines(p.out.String()) {
			must(strings.TrimSpace(line))
		}
	}
	must("etcdctl auth enable")

	me := site("me:secretword@")
	p := me.start("run", "jobs/a", "--", binary, "show", "jobs/a", "--json")
	if code := p.end(); code != 0 || !strings.Contains(strings.ReplaceAll(p.out.String(), " ", ""), `"held":true`) {
		t.Errorf("run and show: exit code %d: %s%s, want exit code %d and text with %q", code, &p.out, &p.err, 0, `"held":true`)
	}
	first := me.start("run", "jobs/a", "--", "cat")
	viewer := site("viewer:secretword@")
	poll(t, func() string {
		if p := viewer.run(0, "ls", "jobs/"); !strings.Contains(p.out.String(), "jobs/a") {
			return "ls shows " + p.out.String()
		}
		return ""
	})
	second := me.start("run", "jobs/a", "--", "true")
	second.says(&second.err, "waiting")
	first.in.Close()
	first.wants(0)
	second.wants(0)
	for what, p := range map[string]*proc{
		"another lock":           me.start("run", "other", "--", "true"),
		"a lock by a viewer":     viewer.start("run", "jobs/a", "--", "true"),
		"another prefix":         newSite(t, storeVar+"=etcd://me:secretword@"+c.Endpoints()[0]).start("run", "jobs/a", "--", "true"),
		"the locks of all names": me.start("ls"),
	} {
		if code := p.end(); code != codeTrouble || !strings.Contains(p.err.String(), "permission") {
			t.Errorf("%s: exit code %d: %s, want exit code %d and text with %q", what, code, &p.err, codeTrouble, "permission")
		}
	}
	if codes, said := site("doctor:secretword@").doctor(1); codes["etcd-unusable"] != "" {
		t.Errorf("doctor: %s, want no finding etcd-unusable", said)
	}
	if out, err := etcdctl("etcdctl --user me:secretword put other x"); err == nil || !strings.Contains(out, "permission denied") {
		t.Errorf("a key of others is written: %s, want text with %q", out, "permission denied")
	}
	for _, wrong := range [][]string{{"--for", "bootstrap"}, {"--user", "a:b"}} {
		site("").run(codeTrouble, append([]string{"acl"}, wrong...)...)
	}
	newSite(t, storeVar+"=postgres://h/d").run(codeTrouble, "acl")
}
