package runner

import (
	"bufio"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCommandDiesWithUs(t *testing.T) {
	out, stdout := pipe(t)
	stdin, _ := pipe(t) // its other end stays open
	h := hostCommand(t, "/bin/sh", "-c", "trap '' TERM HUP; echo ready; read forever")
	h.Stdin, h.Stdout = stdin, stdout
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	out.SetReadDeadline(time.Now().Add(patience))
	r := bufio.NewReader(out)
	if s, err := r.ReadString('\n'); err != nil {
		t.Fatalf("%v (%q)", err, s)
	}
	h.Process.Kill()
	h.Wait()
	if rest, err := io.ReadAll(r); err != nil {
		t.Errorf("the command runs on without us: %v (%q)", err, rest)
	}
}

// Whoever would be the parent of orphans otherwise may take its time.
func TestOrphansOfAKilledCommandAreReaped(t *testing.T) {
	j := sh(t, Budget{Slack: time.Second}, "(echo ready; while :; do sleep 1; done) & wait")
	j.expect("ready")
	j.lease.lose(errLost, time.Hour)
	if o := j.end(); o.Code != CodeLost || o.Signal != syscall.SIGKILL {
		t.Errorf("%+v", o)
	}
	if said := j.said(); strings.Contains(said, "not gone yet") {
		t.Errorf("reported: %s", said)
	}
}
