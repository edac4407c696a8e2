package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

const orphanEnv = "REDISTEST_ORPHAN"

// launchAndWaitForDeath runs in the helper process instead of the tests.
func launchAndWaitForDeath() {
	s, err := Launch(Options{Dir: os.Getenv(orphanEnv)})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	select {}
}

// A test binary that is killed must not leave its servers running.
func TestServerDiesWithItsParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a process to the life of its parent")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), orphanEnv+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	addr := strings.TrimSpace(line)
	conn, err := net.Dial("tcp", addr)
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatalf("cannot connect to the helper's server at %q: %v", addr, err)
	}
	defer conn.Close()
	// The end of the server closes the connection.
	conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := conn.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Fatalf("the server at %s outlived its parent: %v", addr, err)
	}
}
