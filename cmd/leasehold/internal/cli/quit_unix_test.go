//go:build unix

package cli

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Ctrl-\ ends a command that does not handle it, without the stacks of all goroutines.
func TestQuitPrintsNoStacks(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := newSite(t).start("ls", "--store", "redis://"+silent.Addr().String()+"?connect_timeout=60s&max_ttl=2m")
	conn, err := silent.Accept() // it waits for an answer now
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.signal(syscall.SIGQUIT)
	if code := p.end(); code != 128+int(syscall.SIGQUIT) || strings.Contains(p.err.String(), "goroutine") {
		t.Errorf("code %d, stderr %s, want exit code %d and no %q", code, p.err.String(), 128+int(syscall.SIGQUIT), "goroutine")
	}
}

// The signal is caught before the stores are initialized, which takes most of the time
// that the program needs to start.
func TestQuitIsCaughtEarly(t *testing.T) {
	c := exec.Command(binary, "--version")
	c.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	early, late, found := strings.Cut(string(out), "internal/cli/quit ")
	if !found || strings.Contains(early, "init crypto/tls ") || !strings.Contains(late, "init crypto/tls ") {
		t.Errorf("the stores are initialized first, want signals first:\n%s", out)
	}
}
