package induct

import (
	"strings"
	"testing"
	"time"
)

// world has three nodes, and attempts that ask for 10 units.
func world() World {
	return World{
		Nodes: 3, TTL: func(int) time.Duration { return 10 }, Longest: 10,
		Instant: func(uint64) int64 { return 13 }, Error: 13, // any token is near the clock
	}
}

// two are the leases of two attempts in a row, with a renewal, a confirmation, a crash, and
// a lease that ends at a node by itself.
var two = []Event{
	{0, "begin", Args(0)},
	{1, "grant", Args(0, 0, 5, 0)},
	{2, "grant", Args(1, 0, 7, 0)},
	{3, "confirm", Args(0, 0, 7, 0)},
	{4, "win", Args(0, 0b011, 7, 10)},
	{5, "begin", Args(1)},
	{6, "extend", Args(0, 0, 5)},
	{6, "extend", Args(1, 0, 5)},
	{7, "renew", Args(0, 0b011, 15)},
	{8, "giveUp", Args(0)},
	{9, "release", Args(0, 0)},
	{9, "grant", Args(0, 1, 8, 6)},
	{15, "forget", Args(1, 0)},
	{16, "crash", Args(1, 26, 0)},
	{17, "grant", Args(2, 1, 8, 17)},
	{17, "grant", Args(2, 1, 6, 17)}, // of its own lease, for another lock that shares the counter has 8
	{17, "extend", Args(0, 1, 16)},
	{17, "recall", Args(1, 0, 7)},
	{18, "release", Args(1, 0)},
	{25, "pass", Args(26)},
	{26, "grant", Args(1, 1, 9, 17)},
	{26, "confirm", Args(2, 1, 9, 17)},
	{26, "win", Args(1, 0b110, 9, 27)},
}

// Each of these is refused at 17, after the events of two until then.
var refused = []struct {
	event Event
	needs string
}{
	{Event{15, "win", Args(1, 0b101, 8, 16)}, "time goes on"},
	{Event{17, "win", Args(1, 0b101, 8, 20)}, "each node of the majority stands at the token"},
	{Event{17, "grant", Args(0, 0, 9, 0)}, "no attempt has the lock there that conflicts"},
	{Event{17, "grant", Args(0, 1, 7, 0)}, "the token is larger"},
	{Event{17, "grant", Args(1, 1, 9, 0)}, "the node's quarantine is over"},
	{Event{17, "heal", Args(1, 0, 9)}, "the node's quarantine is over"},
	{Event{17, "confirm", Args(1, 0, 9, 0)}, "the attempt has the lock there"},
	{Event{17, "renew", Args(0, 0b011, 15)}, "the lease was not released"},
	{Event{17, "begin", Args(0)}, "the attempt is a new one"},
	{Event{17, "release", Args(2, 1)}, "the attempt was given up"},
	{Event{17, "forget", Args(2, 1)}, "the time that the node promised is over"},
	{Event{17, "crash", Args(2, 20, 0)}, "the quarantine is as long as the longest lease"},
	{Event{17, "recall", Args(0, 0, 7)}, "the node is in quarantine"},
	{Event{17, "recall", Args(1, 1, 8)}, "the lease was ended, or its time is not over"},
}

func TestApply(t *testing.T) {
	t.Run("durable", func(t *testing.T) { testApply(t, Redlock()) })
	t.Run("floor", func(t *testing.T) { testApply(t, RedlockFloor()) })
}

func testApply(t *testing.T, s *Spec) {
	st := s.Start(world())
	for _, e := range two {
		if e.Step == "recall" {
			for _, c := range refused {
				err := st.Apply(c.event)
				if r, ok := err.(*Refusal); !ok || !strings.Contains(r.Needs, c.needs) {
					t.Errorf("%v: %v, want a refusal that says %q", c.event, err, c.needs)
				}
			}
		}
		if err := st.Apply(e); err != nil {
			t.Fatal(err)
		}
		if err := st.Check(); err != nil {
			t.Fatalf("after %v: %v", e, err)
		}
	}
}

// A server that restarted has a reader's old lease from its disk. What the reader says of it
// arrives late, and keeps it there. Nobody shares its token.
func TestReadersAfterARestart(t *testing.T) {
	for _, s := range []*Spec{Redlock(), RedlockFloor()} {
		w := world()
		w.Reads = func(int) bool { return true }
		st := s.Start(w)
		for _, c := range []struct {
			event Event
			needs string
		}{
			{event: Event{0, "begin", Args(0)}},
			{event: Event{0, "begin", Args(1)}},
			{event: Event{0, "begin", Args(2)}},
			{event: Event{1, "grant", Args(0, 0, 5, 0)}},
			{event: Event{1, "grant", Args(0, 1, 5, 0)}},
			{event: Event{2, "giveUp", Args(0)}},
			{event: Event{3, "crash", Args(0, 13, 5)}},
			{event: Event{3, "recall", Args(0, 0, 5)}},
			{event: Event{12, "extend", Args(0, 0, 2)}},
			{Event{13, "grant", Args(0, 2, 5, 13)}, "the token is larger"},
			{event: Event{13, "grant", Args(0, 2, 6, 13)}},
			{event: Event{13, "grant", Args(0, 1, 6, 13)}},
		} {
			err := st.Apply(c.event)
			if r, ok := err.(*Refusal); err != nil && (c.needs == "" || !ok || !strings.Contains(r.Needs, c.needs)) || err == nil && c.needs != "" {
				t.Errorf("%v: %v, want a refusal that says %q", c.event, err, c.needs)
			}
			if err := st.Check(); err != nil {
				t.Fatalf("after %v: %v", c.event, err)
			}
		}
	}
}

// A refusal is short enough to read, and has what decides.
func TestRefusalReads(t *testing.T) {
	st := Redlock().Start(world())
	for _, e := range two[:2] {
		if err := st.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	err := st.Apply(Event{1000, "win", Args(0, 0b011, 5, 10)})
	want := "win(attempt 0, nodes 0+1, 5, 10ns) at 1µs: it is not so that each node of the majority stands at the token, and keeps the lock until the lease ends\n" +
		"\t(all m: (member(m, Q) implies (some e: (answered(m, A, T, e) and (U <= (e + ttl(A))))))); m is node 1"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant\n%s", err, want)
	}
	if err := st.Apply(Event{1000, "grant", Args(3, 0, 5, 0)}); err == nil || !strings.Contains(err.Error(), "no node has the number 3") {
		t.Errorf("a node that does not exist: %v", err)
	}
	if err := st.Apply(Event{1000, "win", Args(0, 0b100, 5, 10)}); err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Errorf("a minority: %v", err)
	}
}

// Every state of a run has the invariant, and one that was changed does not.
func TestCheck(t *testing.T) {
	st := Redlock().Start(world())
	for _, e := range two[:5] {
		if err := st.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range st.spec.State {
		if f.Name == "owner" {
			st.tables[f].set(key{0, 1}, 1)
		}
	}
	if err := st.Check(); err == nil || !strings.HasPrefix(err.Error(), "C1: it is not so that a node has one owner") {
		t.Errorf("two owners: %v", err)
	}
}

// An event costs as much after ten thousand attempts as after ten.
func BenchmarkApply(b *testing.B) {
	st := RedlockFloor().Start(world())
	apply := func(e Event) {
		if err := st.Apply(e); err != nil {
			b.Fatal(err)
		}
	}
	for i := range int64(b.N) / 10 {
		apply(Event{0, "begin", Args(i)})
		for n := range int64(3) {
			apply(Event{0, "grant", Args(n, i, i+1, 0)})
		}
		apply(Event{0, "win", Args(i, 0b111, i+1, 10)})
		apply(Event{0, "extend", Args(0, i, 0)})
		apply(Event{0, "giveUp", Args(i)})
		for n := range int64(3) {
			apply(Event{0, "release", Args(n, i)})
		}
	}
}
