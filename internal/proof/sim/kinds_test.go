package sim

import (
	"fmt"
	"testing"
)

// Read-write locks and semaphores keep their promises, whatever goes wrong, and waiters get
// them.
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
		t.Errorf("%d grants, %d handed, %d losses, want some of each: %+v", all.Grants, all.Handed, all.Losses, all)
	}
	if testing.Verbose() {
		fmt.Printf("%+v\n", all)
	}
}

// A script always gives the same history, also with locks of every kind.
func TestKindsRepeat(t *testing.T) {
	s := KindsOfSeed(3)
	first := Run(t, s, Shipped(), false).Digest
	for range 4 {
		if again := Run(t, s, Shipped(), false).Digest; again != first {
			t.Fatalf("two runs of one script have the digests %x and %x, want the same", first, again)
		}
	}
}

// rush has so many workers that several of them want its only lock, of that kind, nearly all
// the time.
func rush(seed uint64, kind int) Script {
	return Script{Seed: seed, Nodes: 1, Clients: 3, Workers: 3, Locks: 1, TTL: 1, Span: 20, Kinds: kind}
}

// The judge notices each of these mistakes in the scripts of semaphores and read-write locks.
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
		{"kinds-keep-sums", readWrite, Record},
		{"kinds-keep-sums", semaphore, Record},
		{"kinds-differ-in-slots", semaphore, Record},
		{"kinds-keep-ends", readWrite, Record},
		{"kinds-are-handed-on", readWrite, Idle},
		{"kinds-are-handed-on", semaphore, Idle},
	} {
		t.Run(c.edit+" "+c.rule, func(t *testing.T) {
			var others []string
			for seed := range uint64(40) {
				r := Run(t, rush(seed, c.kind), Switches{Edit: without(c.edit), Patient: c.rule != Idle, Trusting: c.rule != Record, PromisesOnly: true}, false)
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
			t.Errorf("no seed violates %q; other violations: %q", c.rule, others)
		})
	}
}
