package localredis

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// sentinelFile is the configuration of a sentinel, which has to be a file: it keeps
// there what it learns, also for when it is restarted.
func (s *setup) sentinelFile() string { return filepath.Join(s.dir, "sentinel.conf") }

// writeSentinel writes the configuration with which a sentinel begins.
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
