package localredis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sentinelFile is the configuration of a sentinel. It must be a file, in which the sentinel
// keeps what it learns over restarts.
func (s *setup) sentinelFile() string { return filepath.Join(s.dir, "sentinel.conf") }

// writeSentinel writes the initial configuration of a sentinel.
func (s *setup) writeSentinel() error {
	if s.sentinel == nil {
		return nil
	}
	lines := append([]string{fmt.Sprintf("port %d", s.port), "bind 127.0.0.1", "daemonize no", fmt.Sprintf("dir %q", s.dir)}, s.sentinel...)
	s.password = ""
	for _, l := range s.sentinel {
		if p, ok := strings.CutPrefix(l, "requirepass "); ok {
			s.password = strings.Trim(p, `"`)
		}
	}
	return os.WriteFile(s.sentinelFile(), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}
