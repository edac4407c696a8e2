package redisdoor

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// 10,000 idle connections, of which each holds a lock, take less than 200 MB.
func TestManyIdleConnections(t *testing.T) {
	const connections, most = 10_000, 200 << 20
	var files syscall.Rlimit
	switch err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); {
	case err != nil || files.Cur < connections+1000:
		t.Fatalf("this needs %d open files, and a process can have %d (%v): raise the hard limit with ulimit -Hn", connections+1000, files.Cur, err)
	case raced():
		t.Skip("the race detector needs memory, too: make test runs this without it")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), idleVar+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	server, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Kill)
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for i := range connections {
		nc, err := net.Dial("tcp", strings.TrimSpace(address))
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer nc.Close()
		nc.(*net.TCPConn).SetLinger(0) // leaves no port behind
		if _, err := io.WriteString(nc, encode("SET", "lock"+strconv.Itoa(i), "v", "NX", "PX", "600000")); err != nil {
			t.Fatal(err)
		}
		var b [5]byte
		if _, err := io.ReadFull(nc, b[:]); err != nil || string(b[:]) != "+OK\r\n" {
			t.Fatalf("connection %d: %q, %v", i, b, err)
		}
	}
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", server.PID()))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(statm))[1])
	if used := pages * os.Getpagesize(); err != nil || used > most {
		t.Errorf("the server takes %d MB, %v", used>>20, err)
	} else {
		t.Logf("the server takes %d MB", used>>20)
	}
}

// raced reports whether the race detector is on.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
