package history

import (
	"testing"
	"time"
)

// A holder that is told of a loss late, or never, is found, unless its process was stopped or
// killed, or it had begun to release.
func TestToldOfALoss(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(*story)
		want int
	}{
		{"released before", func(s *story) { s.release(1, 400, 900) }, 0},
		{"told in time", func(s *story) { s.add(1, Event{Op: Told, At: s.at(1090)}) }, 0},
		{"found out by itself", func(s *story) { s.lost(1, 1100, true) }, 0},
		{"told late", func(s *story) {
			s.add(1, Event{Op: Told, At: s.at(1700)})
			s.lost(1, 1701, false)
		}, 1},
		{"released late", func(s *story) { s.release(1, 1900, 1910) }, 1},
		{"never told", func(*story) {}, 1},
		{"freed, and told at the next renewal", func(s *story) {
			s.Attempts[0].Freed = s.at(900)
			s.add(1, Event{Op: Told, At: s.at(1300)})
		}, 0},
		{"freed, and released before it renewed", func(s *story) {
			s.Attempts[0].Freed = s.at(900)
			s.release(1, 1300, 1310)
		}, 0},
		{"freed, and renewed all the same", func(s *story) {
			s.Attempts[0].Freed = s.at(900)
			s.look(1, 1200, 2200)
			s.add(1, Event{Op: Told, At: s.at(2200)})
		}, 1},
		{"freed while a server had failed", func(s *story) {
			s.Attempts[0].Freed = s.at(900)
			s.Faults = append(s.Faults, &Fault{At: s.at(100), End: s.at(300), On: "node 1"})
			s.add(1, Event{Op: Told, At: s.at(1700)})
		}, 0},
		{"killed", func(s *story) { s.Kill(1, 1, s.at(1200)) }, 0},
		{"stopped", func(s *story) {
			s.Faults = append(s.Faults, &Fault{At: s.at(900), End: s.at(1650), On: Worker(1)})
			s.add(1, Event{Op: Told, At: s.at(1651)})
		}, 0},
		{"another was stopped", func(s *story) {
			s.Faults = append(s.Faults, &Fault{At: s.at(900), End: s.at(1650), On: Worker(2)})
			s.add(1, Event{Op: Told, At: s.at(1651)})
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			s.grant(1, 0, 0, 5, 1000, 10)
			s.grant(2, 0, 900, 1005, 2000, 11)
			c.tell(s)
			s.End = s.at(3000)
			if found := s.told(0, 400*time.Millisecond); len(found) != c.want {
				t.Errorf("found %+v, want %d violations", found, c.want)
			}
		})
	}
}

// Two attempts of one owner are found, unless one goes on with the lease of the other.
func TestOwnersAreNotShared(t *testing.T) {
	for _, again := range []bool{false, true} {
		s := newStory(t)
		for n := range 2 {
			s.n[1]++
			s.add(1, Event{Op: Ask, At: s.at(n), Again: again && n > 0})
			s.add(1, Event{Op: Granted, At: s.at(n), Token: 5, Owner: "the same"})
		}
		if found := s.owners(0); (len(found) == 0) != again {
			t.Errorf("one goes on with the lease of the other: %v: found %+v", again, found)
		}
	}
}
