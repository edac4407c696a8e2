package endtoend

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/leasehold-dev/leasehold/internal/testenv/eventually"
)

// 10,000 waiting connections cost a server at most 400 MB and the store one place. The command is
// built without the race detector, which takes five times the memory.
func TestTenThousandWaiters(t *testing.T) {
	const waiters = 10_000
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur < waiters+500 { // the server raises its own
		limit.Cur = max(limit.Max, limit.Cur)
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); limit.Max < waiters+500 || err != nil {
			t.Fatalf("this needs %d open files, and at most %d are allowed (%v): raise the hard limit with ulimit -Hn", waiters+500, limit.Max, err)
		}
	}
	p := command(t, nil, "serve", "--store", "memory:", "--listen", "127.0.0.1:0")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p.Stderr = w
	p.start(t)
	w.Close()
	said := bufio.NewScanner(r)
	var url string
	for url == "" && said.Scan() {
		if m := regexp.MustCompile(`serving locks at (http://\S+?)/?$`).FindStringSubmatch(said.Text()); m != nil {
			url = m[1]
		}
	}
	if url == "" {
		t.Fatal("the server did not say where it serves")
	}
	go io.Copy(io.Discard, r)

	host := strings.TrimPrefix(url, "http://")
	hold := func(purpose string) net.Conn {
		c, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		body := fmt.Sprintf(`{"purpose":%q,"ttl_ms":60000}`, purpose)
		if _, err := fmt.Fprintf(c, "POST /v1/locks/a/hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
		return c
	}
	begun := func(c net.Conn) {
		line := make([]byte, 4096)
		if n, err := c.Read(line); err != nil || !strings.Contains(string(line[:n]), "200 OK") {
			t.Fatalf("%q, %v", line[:n], err)
		}
	}
	type view struct {
		Purpose string
		Queue   []any
	}
	look := func() (v view) {
		resp, err := http.Get(url + "/v1/locks/a")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}

	holder := hold("hold")
	begun(holder)
	eventually.True(t, "somebody holds the lock", func() bool { return look().Purpose == "hold" })
	alone := mostMemory(t, p.Process.Pid)
	// They come in groups. If all came at once, the most memory would depend on how late the
	// garbage collector is.
	for range waiters / 100 {
		var group [100]net.Conn
		for i := range group {
			group[i] = hold("wait")
		}
		for _, c := range group {
			begun(c)
		}
	}
	eventually.True(t, "the store has one place", func() bool { return len(look().Queue) == 1 })
	kb := mostMemory(t, p.Process.Pid) - alone
	t.Logf("%d waiters: %d MB, %.1f kB each, beside %d MB", waiters, kb/1000, float64(kb)*1.024/waiters, alone/1000)
	if kb > 400_000 {
		t.Errorf("the waiters have needed %d kB, want 400 MB at most", kb)
	}
	holder.Close() // and a waiter has the lock soon
	eventually.True(t, "a waiter has the lock", func() bool { return look().Purpose == "wait" })
}

// mostMemory returns how many kB a process has used at most.
func mostMemory(t *testing.T, pid int) (kb int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(rest, &kb); err != nil || kb == 0 {
		t.Fatalf("the process has no VmHWM: %v", err)
	}
	return kb
}
