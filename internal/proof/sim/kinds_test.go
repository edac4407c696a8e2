package sim

import (
	"fmt"
	"testing"
)

// Read-write locks and semaphores keep their promises, whatever goes wrong, and those that
// wait for them get them.
func TestKinds(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 8
	}
	var all Tally
	for i := range n {
		s := KindsOfSeed(*first + uint64(i))
		r := Run(t, s, Shipped(), false)
		all.Add(r.Tally)
		if len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
		}
	}
	if all.Grants == 0 || all.Handed == 0 || all.Losses == 0 {
		t.Errorf("too little happened: %+v", all)
	}
	if testing.Verbose() {
		fmt.Printf("%+v\n", all)
	}
}

// One script is one history also with locks of every kind.
func TestKindsRepeat(t *testing.T) {
	s := KindsOfSeed(3)
	first := Run(t, s, Shipped(), false).Digest
	for range 4 {
		if again := Run(t, s, Shipped(), false).Digest; again != first {
			t.Fatal("two runs, two histories")
		}
	}
}

// rush has so many workers that its only lock, of that kind, is nearly always wanted by
// several.
func rush(seed uint64, kind int) Script {
	return Script{Seed: seed, Nodes: 1, Clients: 3, Workers: 3, Locks: 1, TTL: 1, Span: 20, Kinds: kind}
}

// The judge notices each mistake that the scripts of these kinds could have.
func TestKindsAreJudged(t *testing.T) {
	const readWrite, semaphore = 1, 2
	for _, c := range []struct {
		edit string
		kind int
		rule string
	}{
		{"kinds-leave-room", readWrite, Exclusion},
		{"kinds-leave-room", semaphore, Permits},
		{"kinds-differ-in-slots", semaphore, Slots},
		{"kinds-readers-draw", readWrite, Token},
		{"kinds-count-tokens", semaphore, Token},
		{"kinds-are-handed-on", readWrite, Idle},
		{"kinds-are-handed-on", semaphore, Idle},
	} {
		t.Run(c.edit+" "+c.rule, func(t *testing.T) {
			var others []string
			for seed := range uint64(40) {
				r := Run(t, rush(seed, c.kind), Switches{Edit: without(c.edit), Patient: c.rule != Idle}, false)
				if len(r.Violations) == 0 {
					continue
				}
				if v := r.Violations[0]; v.Rule != c.rule {
					others = append(others, v.String())
					continue
				}
				t.Log(seed, r.Violations[0])
				if r := Run(t, rush(seed, c.kind), Shipped(), false); len(r.Violations) > 0 {
					t.Errorf("without the mistake: %v", r.Violations)
				}
				return
			}
			t.Errorf("not noticed as %q, but: %q", c.rule, others)
		})
	}
}
