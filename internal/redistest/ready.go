package redistest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

func (s *Server) start(loading bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked(loading)
}

// startLocked starts the process and waits until it, and not some other
// server on the same port, answers.
func (s *Server) startLocked(loading bool) error {
	before := s.logSize()
	p, err := startProcess(s.binary, s.commandLine(), s.dir, s.logPath())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		answer := s.ready(ctx, p.cmd.Process.Pid, before, loading)
		if answer == nil {
			s.proc = p
			return nil
		}
		select {
		case <-p.done:
			log := s.logFrom(before)
			if strings.Contains(log, "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("redistest: %s ended at once (%v); its log:\n%s", s.binary, p.err, log)
		case <-ctx.Done():
			p.kill()
			return fmt.Errorf("redistest: %s does not answer at %s after %v (%v); its log:\n%s",
				s.binary, s.Addr(), patience, answer, s.logFrom(before))
		case <-poll.C:
		}
	}
}

func (s *Server) commandLine() []string {
	return append([]string{
		"--port", strconv.Itoa(s.port),
		"--bind", "127.0.0.1",
		"--daemonize", "no",
		"--save", "",
		"--appendonly", "no",
		"--dir", s.dir,
	}, s.args...)
}

// ready says what keeps the process pid from being taken as up, or nil. The
// pid is asked of the server itself: where a port was taken by somebody
// else's server, that one would answer a PING just as well.
func (s *Server) ready(ctx context.Context, pid int, before int64, loading bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reply, err := s.Do(ctx, "INFO")
	var refused ReplyError
	switch {
	case errors.As(err, &refused):
		// The settings keep even us from asking (an ACL, say). The log is the
		// other thing that only this process writes.
		if strings.Contains(s.logFrom(before), "Ready to accept connections") {
			return nil
		}
		return err
	case err != nil:
		return err
	}
	info, _ := reply.(string)
	if got := infoField(info, "process_id"); got != strconv.Itoa(pid) {
		return fmt.Errorf("process %s has the port", got)
	}
	if !loading && infoField(info, "loading") == "1" {
		return errors.New("still loading its data")
	}
	return nil
}

func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
