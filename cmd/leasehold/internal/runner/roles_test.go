//go:build unix

package runner

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// roles are programs that the test binary can be; see roleVar.
var roles = map[string]func(args []string) int{
	"leaver":  leaver,
	"climber": climber,
	"session": session,
}

// leaver moves to the process group of its parent, and ignores SIGTERM.
func leaver([]string) int {
	signal.Ignore(syscall.SIGTERM)
	group, err := unix.Getpgid(os.Getppid())
	if err == nil {
		err = syscall.Setpgid(0, group)
	}
	fmt.Println("ready", err)
	time.Sleep(2 * patience)
	return 0
}

// climber has a set-user-ID bit, and becomes that user permanently. It ends with its input.
func climber([]string) int {
	signal.Ignore(syscall.SIGTERM)
	err := syscall.Setreuid(0, 0)
	fmt.Println("ready", err)
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// session runs args in a process group of its own, as a shell with job control
// does, but without a terminal: it is to be started in a session of its own. It
// reports the changes of the program's state.
func session(args []string) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	c := exec.Command(self, args...)
	for _, kv := range os.Environ() {
		if len(kv) <= len(roleVar) || kv[:len(roleVar)] != roleVar {
			c.Env = append(c.Env, kv)
		}
	}
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		panic(err)
	}
	fmt.Println("host", c.Process.Pid)
	for {
		var ws syscall.WaitStatus
		_, err := syscall.Wait4(c.Process.Pid, &ws, syscall.WUNTRACED|syscall.WCONTINUED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			panic(err)
		case ws.Stopped():
			fmt.Println("stopped")
		case ws.Continued():
			fmt.Println("continued")
		case ws.Exited():
			fmt.Println("code", ws.ExitStatus())
			return 0
		default:
			fmt.Println("signal", ws.Signal())
			return 0
		}
	}
}
