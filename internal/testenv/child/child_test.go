//go:build unix

package child

import (
	"bufio"
	"io"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cat starts a process that echoes lines until its input ends.
func cat(t *testing.T) (p *Process, in io.WriteCloser, lines chan string) {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p, err = Start(cmd); err != nil {
		t.Fatal(err)
	}
	lines = make(chan string)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		p.Kill()
		<-read
	})
	return p, in, lines
}

func TestFrozenUntilThawed(t *testing.T) {
	p, in, lines := cat(t)
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if !standsStill(p.PID()) {
		t.Error("a frozen process still runs")
	}
	io.WriteString(in, "hello\n")
	select {
	case s := <-lines:
		t.Errorf("a frozen process wrote %q", s)
	case <-time.After(50 * time.Millisecond):
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	if s := <-lines; s != "hello" {
		t.Errorf("after Thaw the process wrote %q, want hello", s)
	}
	in.Close()
	if err := p.Err(); err != nil {
		t.Errorf("the process ended with %v, want no error", err)
	}
	if p.Freeze() == nil || p.Thaw() == nil {
		t.Error("Freeze or Thaw of a process that has ended returned nil, want an error")
	}
}

func TestEndWakesAFrozenProcess(t *testing.T) {
	p, _, _ := cat(t)
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.End(); err != nil {
		t.Errorf("End: %v", err)
	}
	if p.Err() == nil {
		t.Error("Err after the end by a signal: nil, want an error")
	}
	p.Kill()
	p.Kill() // harmless
}

func TestKillEndsAFrozenProcess(t *testing.T) {
	p, _, _ := cat(t)
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	select {
	case <-p.Done():
	default:
		t.Error("Done is open after Kill returned, want it closed")
	}
}

func TestStartOfAMissingProgram(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program")); err == nil {
		t.Error("Start of a missing program: nil, want an error")
	}
}
