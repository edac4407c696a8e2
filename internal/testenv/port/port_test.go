package port

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
)

const other = "LEASEHOLD_TEST_OTHER_PROCESS"

// A port on which nothing listens is not picked by another process until it is released.
func TestPickedPortIsKeptFromOtherProcesses(t *testing.T) {
	if want := os.Getenv(other); want != "" {
		port, err := strconv.Atoi(want)
		if err != nil {
			t.Fatal(err)
		}
		if !reserve(port) {
			os.Exit(3)
		}
		os.Exit(0)
	}
	mine, err := Pick()
	if err != nil {
		t.Fatal(err)
	}
	reserves := func() bool {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), other+"="+strconv.Itoa(mine))
		err := c.Run()
		if err != nil && c.ProcessState.ExitCode() != 3 {
			t.Fatal(err)
		}
		return err == nil
	}
	if reserves() {
		t.Error("another process reserves the port of a server that is down")
	}
	Release(mine)
	if !reserves() {
		t.Error("another process does not reserve a port that was released")
	}
}
