package history

import (
	"testing"
	"time"
)

func (s *story) waits(proc, lock, at int) {
	s.ask(proc, lock, at)
	s.open[ID{Proc: proc, Life: 1, N: s.n[proc]}].Waits = true
}

func (s *story) gives(proc, at int) {
	s.add(proc, Event{Op: Unknown, At: s.at(at)})
}

func (s *story) fault(on string, from, to int) {
	s.Faults = append(s.Faults, &Fault{At: s.at(from), End: s.at(to), On: on})
	s.End = max(s.End, s.at(to))
}

// The judge finds a waiter of a free lock, unless a fault explains the wait.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*story)
		want int // milliseconds
	}{
		{"it was held all the time", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.waits(2, 0, 10)
			s.release(1, 600, 602)
			s.add(2, Event{Op: Granted, At: s.at(604), Token: 11})
			s.release(2, 610, 612)
		}, 2},
		{"it was free for a while", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.waits(2, 0, 10)
			s.release(1, 100, 102)
			s.add(2, Event{Op: Granted, At: s.at(902), Token: 11})
			s.release(2, 910, 912)
		}, 800},
		{"the waiter gave up", func(s *story) {
			s.waits(2, 0, 10)
			s.gives(2, 510)
		}, 500},
		{"of another lock", func(s *story) {
			s.grant(1, 1, 0, 5, 1000, 10)
			s.waits(2, 0, 10)
			s.gives(2, 210)
			s.release(1, 900, 901)
		}, 200},
		{"there were tries but no waiters", func(s *story) {
			s.ask(2, 0, 10)
			s.gives(2, 510)
		}, 0},
		{"the holder was killed", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.waits(2, 0, 10)
			s.Kill(1, 1, s.at(100))
			s.gives(2, 1400)
		}, 1400 - 100 - 1000 - 100},
		{"the client that had asked was killed", func(s *story) {
			s.waits(1, 0, 0)
			s.waits(2, 0, 10)
			s.Kill(1, 1, s.at(100))
			s.gives(2, 1100)
		}, 0},
		{"the waiter was stopped", func(s *story) {
			s.waits(2, 0, 10)
			s.fault(Worker(2), 20, 900)
			s.gives(2, 1050)
		}, 1050 - 900 - 100},
		{"another waiter was stopped", func(s *story) {
			s.waits(1, 0, 0)
			s.waits(2, 0, 10)
			s.fault(Worker(1), 20, 900)
			s.gives(1, 950)
			s.gives(2, 1050)
		}, 1050 - 900 - 100},
		{"two of three servers were unreachable", func(s *story) {
			s.waits(2, 0, 10)
			s.fault("node 1", 20, 700)
			s.fault("node 2", 30, 900)
			s.gives(2, 1000)
		}, 1000 - 700 - 100},
		{"one of three servers was unreachable, at a time", func(s *story) {
			s.waits(2, 0, 0)
			s.fault("node 1", 20, 300)
			s.fault("node 2", 500, 800)
			s.gives(2, 900)
		}, 900},
		{"a release failed", func(s *story) {
			s.grant(1, 0, 0, 5, 1000, 10)
			s.waits(2, 0, 10)
			s.add(1, Event{Op: Release, At: s.at(50)})
			s.add(1, Event{Op: Released, At: s.at(60), Err: "no quorum"})
			s.gives(2, 1400)
		}, 1400 - 50 - 1000 - 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.tell(s)
			l := Idleness{TTL: time.Second, Nodes: 3, Grace: 100 * time.Millisecond}
			_, longest := idleTime{s.History, l}.violations()
			want := time.Duration(c.want) * time.Millisecond
			if longest != want {
				t.Errorf("the longest wait for a free lock is %v, want %v", longest, want)
			}
			for _, bound := range []time.Duration{want - 1, want} {
				l.Bound = bound
				if found, _ := (idleTime{s.History, l}).violations(); bound > 0 && (len(found) > 0) != (want > bound) {
					t.Errorf("with a bound of %v: %v, want a violation: %v", bound, found, want > bound)
				}
			}
		})
	}
}
