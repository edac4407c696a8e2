package zktest

import (
	"slices"
	"testing"
	"time"
)

// A member that is cut off from the others stops serving, also if it is the leader, and serves
// again once it is reconnected. The others have a leader meanwhile.
func TestEnsemble(t *testing.T) {
	t.Parallel() // it mostly waits
	e, err := LaunchEnsemble(3, Options{Tick: 500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	f, err := e.Follower()
	if err != nil {
		t.Fatal(err)
	}
	if mode, err := e.Servers[f].Mode(); err != nil || mode != "follower" {
		t.Fatalf("member %d has the mode %s, %v, want follower", f, mode, err)
	}
	if addrs := e.Addrs(); len(addrs) != 3 || slices.Contains(addrs[1:], addrs[0]) {
		t.Fatalf("addresses %q, want 3 different ones", addrs)
	}
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{f, leader} {
		e.Cut(i)
		for err = nil; err == nil; {
			_, err = e.Servers[i].Mode()
		}
		if now, err := e.Leader(); err != nil || now == i {
			t.Fatalf("while member %d is cut off, the leader is %d, %v, want another one", i, now, err)
		}
		e.Heal(i)
		if err := e.Servers[i].await(); err != nil {
			t.Fatal(err)
		}
	}
}

// A server that was killed can be restarted.
func TestRestart(t *testing.T) {
	t.Parallel() // it mostly waits
	s, err := Launch(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	pid := s.PID()
	s.Kill()
	if _, err := s.Mode(); err == nil {
		t.Fatal("Mode of a killed server: nil, want an error")
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if mode, err := s.Mode(); err != nil || mode != "standalone" || s.PID() == pid {
		t.Fatalf("after the restart the mode is %s (%v), want standalone; process %d, want another than %d", mode, err, s.PID(), pid)
	}
}
