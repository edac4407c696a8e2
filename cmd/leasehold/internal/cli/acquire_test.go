//go:build unix

package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// If the owner cannot be printed, the lease is released: only the printed owner could release it.
func TestAcquireThatCannotPrint(t *testing.T) {
	reader, unread, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	reader.Close()
	s := newSite(t)
	var says strings.Builder
	c := exec.Command(binary, "acquire", "x", "--ttl", "1h")
	c.Env, c.Stdout, c.Stderr = s.env, unread, &says
	if err := c.Run(); c.ProcessState.ExitCode() != codeTrouble || !strings.Contains(says.String(), "printing the owner") {
		t.Errorf("%v: %s, want exit code %d and \"printing the owner\"", err, says.String(), codeTrouble)
	}
	s.run(0, "run", "x", "--try", "--", "true")
}

func TestCompleteOwner(t *testing.T) {
	s := newSite(t).plain()
	var owner string
	for owner = "-"; owner[0] == '-'; { // a shell would take it for a flag
		owner = strings.Fields(s.run(0, "acquire", "x", "--ttl", "1m").out.String())[0]
		if owner[0] == '-' {
			s.run(0, "release", "x", "--owner", owner)
		}
	}
	if out := s.run(0, "__complete", "release", "x", "--owner", "").out.String(); !strings.HasPrefix(out, owner+"\n") {
		t.Errorf("%q, want %q at the beginning", out, owner+"\n")
	}
	if out := s.run(0, "__complete", "release", "").out.String(); !strings.HasPrefix(out, "x\n") {
		t.Errorf("%q, want %q at the beginning", out, "x\n")
	}
	if out := s.run(0, "__complete", "release", "y", "--owner", "").out.String(); !strings.HasPrefix(out, ":") {
		t.Errorf("%q, want %q at the beginning", out, ":")
	}
}
