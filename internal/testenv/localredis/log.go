package localredis

import (
	"os"
	"path/filepath"
	"strings"
)

// Log returns what the server has logged, over all restarts, or the end of it if
// it is long.
func (s *Server) Log() string {
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	const most = 16 << 10
	if len(b) > most {
		b = append([]byte("..."), b[len(b)-most:]...)
	}
	return strings.TrimSpace(string(b))
}

func (s *Server) logPath() string { return filepath.Join(s.dir, "redis-server.log") }

func (s *Server) logSize() int64 {
	fi, err := os.Stat(s.logPath())
	if err != nil {
		return 0
	}
	return fi.Size()
}

func (s *Server) logFrom(offset int64) string {
	b, err := os.ReadFile(s.logPath())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[min(int(offset), len(b)):]))
}
