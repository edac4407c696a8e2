//go:build unix

package cli

import (
	"os/exec"
	"syscall"
	"testing"
)

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
