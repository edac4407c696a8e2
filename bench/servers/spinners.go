package servers

import (
	"os"
	"os/exec"
	"runtime"
)

// Spinners are processes that keep every processor awake. With one goroutine on an idle
// machine, a measurement without them is mostly the time that a processor takes to go
// to sleep and wake up.
type Spinners []*exec.Cmd

// SpinArg makes this program a spinner: main calls Spin then.
const SpinArg = "spin"

// StartSpinners starts one for each processor.
func StartSpinners() (Spinners, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all Spinners
	for range runtime.NumCPU() {
		c := exec.Command(self, SpinArg)
		c.Stderr = os.Stderr
		c.Env = append(os.Environ(), "GOMAXPROCS=1")
		if err := c.Start(); err != nil {
			all.Stop()
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// Stop ends them.
func (s Spinners) Stop() {
	for _, c := range s {
		c.Process.Kill()
		c.Wait()
	}
}
