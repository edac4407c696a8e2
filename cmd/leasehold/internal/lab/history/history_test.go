package history

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
)

// story makes histories by hand. Times are milliseconds from the start.
type story struct {
	*History
	t      *testing.T
	n      map[int]int // attempts by process
	weight int64       // of the attempts that begin
	slot   int64       // of the grants
}

func newStory(t *testing.T) *story {
	return &story{History: New([]string{"a", "b"}), t: t, n: map[int]int{}}
}

func (s *story) at(ms int) clock.Instant { return s.Start.Add(time.Duration(ms) * time.Millisecond) }

func (s *story) add(proc int, e Event) {
	s.t.Helper()
	e.N = s.n[proc]
	if err := s.Add(proc, 1, e); err != nil {
		s.t.Fatal(err)
	}
}

// ask begins an attempt of a process to acquire a lock.
func (s *story) ask(proc, lock, at int) {
	s.n[proc]++
	s.add(proc, Event{Op: Ask, At: s.at(at), Lock: lock, Weight: s.weight})
}

// grant is a whole acquire: asked, granted, and found valid until then.
func (s *story) grant(proc, lock, asked, granted, until int, token fence.Token) {
	s.ask(proc, lock, asked)
	s.add(proc, Event{Op: Granted, At: s.at(granted), From: s.at(asked), Token: token, Owner: fmt.Sprintf("%d of %d", s.n[proc], proc), Slot: s.slot})
	s.look(proc, granted, until)
}

func (s *story) look(proc, at, until int) {
	a := s.open[ID{Proc: proc, Life: 1, N: s.n[proc]}]
	s.add(proc, Event{Op: Trust, At: s.at(at), Done: s.at(at + 1), Until: s.at(until), Write: len(a.Looks) + 1})
}

func (s *story) release(proc, at, done int) {
	s.add(proc, Event{Op: Release, At: s.at(at)})
	s.add(proc, Event{Op: Released, At: s.at(done)})
}

func (s *story) lost(proc, at int, denied bool) {
	s.add(proc, Event{Op: Lost, At: s.at(at), Denied: denied})
}

// wrote is the next write to arrive at the resource.
func (s *story) wrote(proc, lock, number int, token fence.Token) {
	s.Writes = append(s.Writes, Write{By: ID{Proc: proc, Life: 1, N: s.n[proc]}, Lock: lock, Slot: s.slot, Number: number, Token: token})
}

func (s *story) check() Findings {
	return s.Check(Limits{Calm: 3 * time.Second, Patience: 20 * time.Second})
}

// namedStory is a story with a name and what the judge finds in it.
type namedStory struct {
	name string
	tell func(*story)
	want []string // checks that must find something; no others may
}

var stories = []namedStory{
	{"one after the other", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.release(1, 100, 110)
		s.grant(2, 0, 50, 120, 1100, 11)
		s.release(2, 200, 205)
	}, nil},
	{"two locks at once", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 1, 0, 5, 1000, 10)
	}, nil},
	{"granted while the release is on its way", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.release(1, 100, 150)
		s.grant(2, 0, 50, 120, 1100, 11)
	}, nil},
	{"granted after the validity of a stopped holder", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 900, 1001, 2000, 11)
		s.lost(1, 1500, false)
		s.release(1, 1501, 1502)
	}, nil},
	{"stopped while it was granted, until after the validity", func(s *story) {
		s.grant(2, 0, 900, 1050, 2000, 11)
		s.grant(1, 0, 0, 1500, 1000, 10) // it held the lock from soon after 0 on
		s.lost(1, 1501, false)
		s.release(2, 1600, 1610)
	}, nil},
	{"granted after a kill", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.Kill(1, 1, s.at(300))
		s.grant(2, 0, 250, 310, 1300, 11)
	}, nil},
	{"granted after a loss that the store reported", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.look(1, 200, 1000)
		s.grant(2, 0, 250, 310, 1300, 11)
		s.lost(1, 320, true)
	}, nil},
	{"killed while it released", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.add(1, Event{Op: Release, At: s.at(100)})
		s.Kill(1, 1, s.at(300))
		s.grant(2, 0, 50, 110, 1100, 11)
	}, nil},
	{"unknown attempts explain nothing and forbid nothing", func(s *story) {
		s.ask(3, 0, 0)
		s.grant(1, 0, 0, 5, 1000, 10)
		s.ask(4, 0, 7)
		s.add(4, Event{Op: Unknown, At: s.at(20)})
		s.release(1, 100, 150)
		s.ask(4, 0, 160)
		s.add(4, Event{Op: Failed, At: s.at(170)})
		s.grant(2, 0, 50, 180, 1100, 12)
		s.Kill(3, 1, s.at(190))
		s.ask(5, 0, 200)
	}, nil},
	{"a write of a holder that was stopped", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.add(1, Event{Op: Trust, At: s.at(990), Done: s.at(1500), Until: s.at(1000), Write: 2})
		s.grant(2, 0, 900, 1001, 2000, 11)
		s.wrote(1, 0, 1, 10)
		s.wrote(2, 0, 1, 11)
		s.wrote(1, 0, 2, 10)
	}, nil},
	{"granted again within the calm", func(s *story) {
		s.Calm = s.at(0)
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 1, 0, 2900, 4000, 10)
	}, nil},

	{"two holders", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 50, 120, 1100, 11)
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"two holders, the second within the first", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 50, 120, 1100, 11)
		s.release(2, 120, 121)
		s.release(1, 500, 501)
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"three holders, two beside the first", func(s *story) {
		s.grant(1, 0, 0, 5, 10, 10)
		s.look(1, 9, 1000)
		s.grant(2, 0, 50, 120, 130, 11)
		s.grant(3, 0, 200, 220, 230, 12)
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"granted before the release began", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 50, 99, 1100, 11)
		s.release(1, 100, 150)
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"granted before the kill", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 250, 299, 1300, 11)
		s.Kill(1, 1, s.at(300))
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"granted before the holder was notified", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 250, 940, 1300, 11)
		s.lost(1, 950, false)
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"granted while a holder that the store denied later found it good", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 0, 250, 310, 1300, 11)
		s.look(1, 315, 1000)
		s.lost(1, 320, true)
	}, []string{"mutual exclusion", "lock model", "steps"}},
	{"a smaller token", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.release(1, 100, 110)
		s.grant(2, 0, 120, 130, 1100, 9)
	}, []string{"tokens", "token model", "steps"}},
	{"the same token", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.release(1, 100, 110)
		s.grant(2, 0, 4, 130, 1100, 10)
	}, []string{"tokens", "token model", "steps"}},
	{"no token", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 0)
	}, []string{"tokens", "token model", "steps"}},
	{"a write in time after a later holder's", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.release(1, 100, 110)
		s.grant(2, 0, 50, 120, 1100, 11)
		s.wrote(2, 0, 1, 11)
		s.wrote(1, 0, 1, 10)
	}, []string{"writes"}},
	{"never granted again", func(s *story) {
		s.grant(1, 0, 0, 5, 1000, 10)
		s.grant(2, 1, 0, 5, 1000, 10)
		s.Calm = s.at(10)
		s.grant(1, 0, 2000, 2001, 2010, 20)
	}, []string{"liveness"}},
	{"granted again too late", func(s *story) {
		s.Calm = s.at(10)
		s.grant(2, 1, 0, 15, 1000, 10)
		s.grant(1, 0, 0, 3011, 4000, 10)
	}, []string{"liveness"}},
}

func TestStories(t *testing.T) { judge(t, stories) }

// judge checks which violations are found in each story.
func judge(t *testing.T, stories []namedStory) {
	for _, c := range stories {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.tell(s)
			f := s.check()
			var found []string
			for _, v := range f.Violations {
				found = append(found, v.Check)
			}
			slices.Sort(found)
			found = slices.Compact(found)
			want := slices.Clone(c.want)
			slices.Sort(want)
			if !slices.Equal(found, want) {
				t.Errorf("found violations of %q, want %q: %+v", found, want, f.Violations)
			}
			if len(f.Undecided) > 0 {
				t.Errorf("undecided: %q, want none", f.Undecided)
			}
			var svg bytes.Buffer
			if err := s.Plot(&svg, f.Violations); err != nil {
				t.Error(err)
			}
			for d := xml.NewDecoder(&svg); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("the plot is no SVG: %v", err)
				}
			}
		})
	}
}

// A history that a model refuses has a picture, and the text of a violation names the
// attempts, and the faults at their time.
func TestViolationIsShown(t *testing.T) {
	s := newStory(t)
	s.grant(1, 0, 0, 5, 1000, 10)
	s.Faults = append(s.Faults,
		&Fault{At: s.at(50), End: s.at(80), On: "worker 1", What: "stopped"},
		&Fault{At: s.at(5000), End: s.at(5001), On: "worker 2", What: "much later"})
	s.grant(2, 0, 50, 120, 1100, 9)
	for _, v := range s.check().Violations {
		told := strings.Join(s.Around(v), "\n")
		for _, a := range v.Attempts {
			told += s.Tell(a)
		}
		for _, want := range []string{"1.1/0#1", "2.1/0#1", "granted 0.1200s", "token 9", "0.0500s to 0.0800s: worker 1: stopped"} {
			if !strings.Contains(told, want) {
				t.Errorf("the text of %s:\n%s\nwant text with %q", v.Check, told, want)
			}
		}
		if strings.Contains(told, "much later") {
			t.Errorf("the text of %s:\n%s\nwant no fault of another time, %q", v.Check, told, "much later")
		}
		var page bytes.Buffer
		switch err := s.Picture(&page, v); {
		case !strings.HasSuffix(v.Check, "model"):
			if err == nil {
				t.Errorf("a picture of %s: no error, want one: only models have pictures", v.Check)
			}
		case err != nil:
			t.Error(err)
		case !strings.Contains(page.String(), "1.1/0#1"):
			t.Errorf("the picture of %s lacks the first attempt, 1.1/0#1", v.Check)
		}
	}
}

// busy is a long history of a lock that keeps its promises under faults: some
// holders are killed or stopped, some attempts have no known outcome.
func busy(t *testing.T, attempts int) *story {
	s := newStory(t)
	now := 0
	for i := range attempts {
		proc := 1 + i%6
		asked := max(0, now-20) // before the last hold was over
		switch i % 10 {
		case 3:
			s.ask(proc, 0, asked)
			s.add(proc, Event{Op: Unknown, At: s.at(now + 15)})
			continue
		case 7: // its loss is reported late
			s.grant(proc, 0, asked, now+2, now+12, fence.Token(i+1))
			s.lost(proc, now+25, false)
			now += 13
			continue
		case 9: // it is released, and the release has no answer
			s.grant(proc, 0, asked, now+2, now+500, fence.Token(i+1))
			s.add(proc, Event{Op: Release, At: s.at(now + 10)})
			now += 13
			continue
		}
		s.grant(proc, 0, asked, now+2, now+500, fence.Token(i+1))
		s.release(proc, now+8, now+14)
		now += 11
	}
	return s
}

// Histories of many thousand operations are decided, good or bad, and a single
// fault in the middle is found by every check that can see it.
func TestLongHistories(t *testing.T) {
	const many = 9000
	if f := busy(t, many).check(); len(f.Violations) > 0 || len(f.Undecided) > 0 || f.Granted < many*8/10 {
		t.Errorf("a good history: %d grants, undecided %q, violations %+v, want grants only", f.Granted, f.Undecided, f.Violations)
	}
	for _, c := range []struct {
		name  string
		spoil func(*Attempt)
		want  []string
	}{
		{"a hold that lasts too long", func(a *Attempt) { a.Release += clock.Instant(30 * time.Millisecond); a.Released = a.Release }, []string{"mutual exclusion", "lock model", "steps"}},
		{"a token of an earlier grant", func(a *Attempt) { a.Token -= 20 }, []string{"tokens", "token model", "steps"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := busy(t, many)
			c.spoil(s.Attempts[many/2+1])
			f := s.check()
			for _, check := range c.want {
				if !slices.ContainsFunc(f.Violations, func(v Violation) bool { return v.Check == check }) {
					t.Errorf("the check of %s found nothing, want a violation; undecided: %q", check, f.Undecided)
				}
			}
			for _, v := range f.Violations {
				if strings.HasSuffix(v.Check, "model") {
					if err := s.Picture(io.Discard, v); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
}
