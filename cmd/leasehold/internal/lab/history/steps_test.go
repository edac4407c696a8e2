package history

import (
	"strings"
	"testing"
	"time"
)

// A history that breaks a promise of the proof, or has a lease that no server of it can have
// given, is refused with the step, and what the step needs.
func TestStepsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*story)
		says []string // empty: it is explained
	}{
		{"P1: two holders", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.grant(2, 0, 50, 120, 1100, 11)
		}, []string{"grant(", "attempt 2.1/0#1", "no attempt has the lock there that conflicts", "a is attempt 1.1/0#1"}},
		{"P2: one token twice", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.release(1, 100, 110)
			s.grant(2, 0, 120, 130, 1100, 10)
		}, []string{"grant(", "attempt 2.1/0#1, 10", "the token is larger than the node's counter"}},
		{"P3: a smaller token after a larger one", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.release(1, 100, 110)
			s.grant(2, 0, 120, 130, 1100, 9)
		}, []string{"grant(", "attempt 2.1/0#1, 9", "the token is larger than the node's counter"}},
		{"a lease that is longer than its TTL", func(s *story) {
			s.grant(1, 0, 0, 5, 1500, 10)
		}, []string{"extend(", "the request has left"}},
		{"a lease that was renewed to more than its TTL", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.look(1, 300, 1400)
		}, []string{"extend(", "the request has left"}},
		{"a grant while a renewed lease was used", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.look(1, 600, 1500)
			s.grant(2, 0, 900, 1005, 1900, 11)
		}, []string{"grant(", "no attempt has the lock there that conflicts"}},
		{"renewed again and again, unseen", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.look(1, 5000, 5900)
			s.release(1, 5100, 5110)
			s.grant(2, 0, 900, 5105, 6000, 11)
		}, nil},
		{"renewed before the first look", func(s *story) {
			s.grant(1, 0, 0, 5, 1900, 10)
			s.Attempts[0].Looks[0].At, s.Attempts[0].Looks[0].Done = s.at(1000), s.at(1001)
		}, nil},
		{"granted by a hand-off that counts from a request long before", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.release(1, 800, 810)
			s.grant(2, 0, 10, 805, 1010, 11)
		}, nil},
		{"broken by an operator", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.Attempts[0].Freed = s.at(100)
			s.grant(2, 0, 50, 105, 1100, 11)
			s.release(1, 300, 310)
		}, nil},
		{"broken by an operator before its holder learned of it", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.release(1, 100, 110)
			s.grant(2, 0, 60, 130, 1100, 11)
			s.Attempts[1].Freed = s.at(90)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.tell(s)
			found := s.steps(0, time.Second)
			if len(found) != min(1, len(c.says)) {
				t.Fatalf("found %+v, want %d violations", found, min(1, len(c.says)))
			}
			for _, say := range c.says {
				if !strings.Contains(found[0].What, say) {
					t.Errorf("%s\nwant text with %q", found[0].What, say)
				}
			}
		})
	}
}

// Two requests were under way at once, and the one that held the lock first has the larger token.
// Only one order explains who had the lock, and only the other one the tokens.
func TestOnlyStepsFind(t *testing.T) {
	s := newStory(t)
	s.grant(1, 0, 0, 5, 1000, 11)
	s.release(1, 6, 7)
	s.grant(2, 0, 3, 10, 1000, 10)
	if found := s.check().Violations; len(found) != 1 || found[0].Check != "steps" || len(found[0].Attempts) != 2 {
		t.Errorf("found %+v, want one violation, of the steps of two attempts", found)
	}
}
