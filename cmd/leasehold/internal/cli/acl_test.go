//go:build unix

package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/redistest"
)

// redisCLI has redis-cli read one line, as an operator would type it.
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
		t.Fatalf("%s\n%s%v", line, out, err)
	}
}

// The rule can be given to redis-cli as it is, and the command works with it.
func TestACLIsTakenByRedis(t *testing.T) {
	servers := redistest.StartN(t, 3)
	s := newSite(t)
	for _, prefix := range []string{"jobs/", "a b*", `q"\'`, "grün", ""} {
		p := s.run(0, "acl", "--user", "u", "--prefix", prefix, "--for", "lock,doctor", "--db", "0")
		line := p.out.String()
		if strings.Count(line, "\n") != 1 || !strings.Contains(p.err.String(), "PASSWORD") {
			t.Errorf("stdout %q, stderr %q", line, p.err.String())
		}
		for _, server := range servers {
			redisCLI(t, server, strings.Replace(strings.TrimSpace(line), "PASSWORD", "pw", 1))
		}
		at := newSite(t, storeVar+"=redis://u:pw@"+addresses(servers))
		at.run(0, "run", prefix+"1", "--", "true")
		if codes, said := at.doctor(1, "--prefix", prefix); codes["same-host"] == "" || codes["info-forbidden"]+codes["config-forbidden"]+codes["keys-not-seen"] != "" {
			t.Errorf("%q: %s", prefix, said)
		}
	}
}

func TestACLVariants(t *testing.T) {
	s := newSite(t)
	for args, want := range map[string]string{
		"acl": "ACL SETUSER locker reset on >PASSWORD ~* &leasehold:to:* +evalsha +eval +get +mget +set +del +rpush +lindex +linsert +lrange +lrem +lpop +pttl +pexpire +time +info +hscan +client|tracking +publish +subscribe\n",
		"acl -q --user viewer --prefix x --for show --db 3": "ACL SETUSER viewer reset on >PASSWORD ~x* ~{x*}:* ~leasehold:node +evalsha +eval +get +lrange +pttl +time +info +hscan +select\n",
		"acl --for show,ls": "ACL SETUSER locker reset on >PASSWORD ~* +evalsha +eval +get +lrange +pttl +time +info +scan +hscan\n",
	} {
		p := s.run(0, strings.Fields(args)...)
		if p.out.String() != want {
			t.Errorf("%s: %s\nwant %s", args, p.out.String(), want)
		}
		if quiet := strings.Contains(args, "-q"); quiet != (p.err.String() == "") {
			t.Errorf("%s: stderr %q", args, p.err.String())
		}
	}
}
