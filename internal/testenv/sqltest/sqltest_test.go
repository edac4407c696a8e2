package sqltest

import (
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

// The servers answer a client that connects (PostgreSQL after a request). After Close they are
// gone, with all their files.
func TestServersComeAndGo(t *testing.T) {
	launches := map[string]func(...string) (*Server, error){"PostgreSQL": LaunchPostgreSQL, "MariaDB": LaunchMariaDB}
	if MySQL() != "" {
		launches["MySQL"] = LaunchMySQL
	}
	for name, launch := range launches {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := launch()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			conn, err := net.Dial("tcp", s.Addr)
			if err != nil {
				t.Fatalf("connect: %v\n%s", err, s.Log())
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			if name == "PostgreSQL" {
				conn.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}) // SSLRequest
			}
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Errorf("the server does not answer: %v\n%s", err, s.Log())
			}
			s.Kill()
			if err := s.Restart(); err != nil {
				t.Errorf("restart after Kill: %v\n%s", err, s.Log())
			}
			s.Close()
			s.Close()
			if _, err := net.Dial("tcp", s.Addr); err == nil {
				t.Error("the server still listens after Close")
			}
			if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
				t.Errorf("the server's files after Close: %v, want them gone", err)
			}
		})
	}
}

func TestMissingProgramSaysWhatToInstall(t *testing.T) {
	_, err := engine{install: "apt-get install x"}.find([]string{"no-such-program"}, t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "apt-get install x") || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("find: %v, want it to name the program and what to install", err)
	}
}
