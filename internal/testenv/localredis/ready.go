package localredis

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
	before := s.log().size()
	p, err := s.run()
	if err != nil {
		return fmt.Errorf("localredis: starting %s: %w", s.binary, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		answer := s.ready(ctx, p.PID(), before, loading)
		if answer == nil {
			s.proc = p
			return nil
		}
		select {
		case <-p.Done():
			log := s.log().from(before)
			if strings.Contains(log, "Address already in use") {
				return errPortTaken
			}
			return fmt.Errorf("localredis: %s ended at once (%v); its log:\n%s", s.binary, p.Err(), log)
		case <-ctx.Done():
			p.Kill()
			return fmt.Errorf("localredis: %s does not answer at %s after %v (%v); its log:\n%s",
				s.binary, s.Addr(), patience, answer, s.log().from(before))
		case <-poll.C:
		}
	}
}

// ready returns why the process pid does not count as up, or nil. It asks the server for its
// process id, because another server that has taken the port would answer a PING as well.
func (s *Server) ready(ctx context.Context, pid int, before int64, loading bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	reply, err := s.Do(ctx, "INFO")
	var refused ReplyError
	switch {
	case errors.As(err, &refused):
		// The settings, such as an ACL, do not allow the question. The log is also written
		// by this process alone.
		if strings.Contains(s.log().from(before), "Ready to accept connections") {
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
		return errors.New("the server is still loading its data")
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
