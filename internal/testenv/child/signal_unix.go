//go:build unix

package child

import (
	"fmt"
	"syscall"
	"time"
)

// terminate also wakes a frozen process, which would not see the signal.
func (p *Process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

func (p *Process) freeze() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for end := time.Now().Add(patience); !standsStill(p.cmd.Process.Pid); {
		if time.Now().After(end) {
			return fmt.Errorf("it still runs %v after SIGSTOP", patience)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func (p *Process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
