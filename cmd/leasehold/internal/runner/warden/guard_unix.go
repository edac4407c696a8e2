//go:build unix

package warden

import (
	"encoding/binary"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// guard is the main function of a guard. It ends by being killed, when it is not
// needed any more, or when its standard input ends: its parent was killed then.
func guard(args []string) (code int) {
	pid, err := strconv.Atoi(args[1])
	if err != nil || pid < 2 {
		return codeTrouble
	}
	// A signal to all processes of a service is for the command, which may take its
	// time to end.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTSTP)
	parent := os.Getppid()
	ends := make(chan time.Duration)
	go func() {
		defer close(ends)
		for {
			var b [8]byte
			if _, err := io.ReadFull(os.Stdin, b[:]); err != nil {
				return
			}
			ends <- time.Duration(binary.NativeEndian.Uint64(b[:]))
		}
	}()
	end := BootTime() + time.Hour
	look := time.NewTicker(time.Hour)
	for {
		// Timers stand still while a machine is suspended: look again.
		look.Reset(min(max(end-BootTime(), 20*time.Millisecond), 5*time.Second))
		select {
		case next, ok := <-ends:
			if !ok {
				killAll(pid)
				return 0
			}
			end = next
		case <-look.C:
			// While our parent runs, it ends the command in time itself.
			if BootTime() > end && isStopped(parent) {
				killAll(pid)
			}
		}
	}
}

// killAll kills the command and its group. The number of the group stays taken
// while it has a member, and our parent kills us as soon as the command was
// reaped, so that it is nobody else's.
func killAll(pid int) {
	syscall.Kill(-pid, syscall.SIGKILL)
	killProcess(pid)
}
