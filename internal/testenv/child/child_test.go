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

// cat starts a process that answers lines with themselves until its input ends.
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
		t.Error("it still runs")
	}
	io.WriteString(in, "hello\n")
	select {
	case s := <-lines:
		t.Errorf("a frozen process says %q", s)
	case <-time.After(50 * time.Millisecond):
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	if s := <-lines; s != "hello" {
		t.Errorf("it says %q", s)
	}
	in.Close()
	if err := p.Err(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if p.Freeze() == nil || p.Thaw() == nil {
		t.Error("a process that is gone was frozen or thawed")
	}
}

func TestEndWakesAFrozenProcess(t *testing.T) {
	p, _, _ := cat(t)
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := p.End(); err != nil {
		t.Error(err)
	}
	if p.Err() == nil {
		t.Error("it was ended by a signal, and is said to have ended well")
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
		t.Error("it is not gone")
	}
}

func TestStartOfNothing(t *testing.T) {
	if _, err := Start(exec.Command("/no/such/program")); err == nil {
		t.Error("started a program that is not there")
	}
}
