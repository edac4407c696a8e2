package etcdstore

import "testing"

// reading returns how many waiters can read the queue at once, and takes their slots.
func (s *searches) reading() (n int) {
	for {
		select {
		case s.slots <- struct{}{}:
			n++
		default:
			return n
		}
	}
}

// After slow answers fewer waiters of a process read queues at once, but always one, and after
// quick answers as many as before.
func TestSlowAnswersLetFewerWaitersRead(t *testing.T) {
	s := &searches{slots: make(chan struct{}, mostSearches)}
	if n := s.reading(); n != mostSearches {
		t.Fatalf("%d waiters read at once, want %d", n, mostSearches)
	}
	for range mostSearches {
		s.end(2 * slowSearch)
	}
	if n := s.reading(); n != 1 {
		t.Errorf("after slow answers %d waiters read at once, want 1", n)
	}
	for range 10 {
		s.end(slowSearch / 2) // neither slow nor quick
		if n := s.reading(); n != 1 {
			t.Errorf("after an answer that was not quick %d more waiters read, want 1", n)
		}
	}
	for want := 2; want <= mostSearches; want++ {
		s.end(0)
		if n := s.reading(); n != 2 {
			t.Errorf("after a quick answer %d more waiters read, want 2: %d at once", n, want)
		}
	}
	s.end(0)
	if n := s.reading(); n != 1 {
		t.Errorf("after another quick answer %d more waiters read, want 1", n)
	}
}
