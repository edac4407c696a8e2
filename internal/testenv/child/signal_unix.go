//go:build unix

package child

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// terminate also thaws a frozen process, which would not get the signal.
func (p *Process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

func (p *Process) freeze() error { return Freeze(p.cmd.Process) }

// Freeze stops a process (SIGSTOP) and returns when it has stopped: until one of its
// threads has taken the signal, the others run on.
func Freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(patience); !standsStill(p.Pid); {
		if time.Now().After(end) {
			return fmt.Errorf("the process still runs %v after SIGSTOP", patience)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (p *Process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
