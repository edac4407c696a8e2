//go:build unix

package redistest

import (
	"fmt"
	"syscall"
	"time"
)

// terminate also wakes a frozen process, which would not see the signal.
func (p *process) terminate() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

func (p *process) freeze() error {
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

func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
