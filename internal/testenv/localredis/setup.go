package localredis

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/leasehold-dev/leasehold/internal/testenv/child"
)

// setup is what stays the same over restarts of a server.
type setup struct {
	binary   string
	port     int
	bus      int // port on which members of its cluster talk to it; 0: it is in none
	dir      string
	ownDir   bool
	args     []string
	sentinel []string // see Options
	password string
}

func (s *setup) log() logFile { return logFile(filepath.Join(s.dir, "redis-server.log")) }

// run starts the process, which writes to the log.
func (s *setup) run() (*child.Process, error) {
	log, err := os.OpenFile(string(s.log()), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the process has its own copy
	cmd := exec.Command(s.binary, s.commandLine()...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	return child.Start(cmd)
}

func (s *setup) commandLine() []string {
	if s.sentinel != nil {
		return []string{s.sentinelFile(), "--sentinel"}
	}
	settings := []string{
		"--port", strconv.Itoa(s.port),
		"--bind", "127.0.0.1",
		"--daemonize", "no",
		"--save", "",
		"--appendonly", "no",
		"--dir", s.dir,
	}
	if s.bus != 0 {
		settings = append(settings, "--cluster-enabled", "yes")
	}
	return append(settings, s.args...)
}
