package sim

import (
	"slices"
	"testing"
)

// The kinds of the first lock, as Script.Kinds has them.
const (
	crowdReads   = 1
	crowdPermits = 2
	crowdWaits   = 3
)

// crowded has a crowd on the first lock, of that kind, beside holders in its process, an operator
// and a rival process. Now and then the process of the crowd reaches no node for so long that
// all of its leases end.
func crowded(seed uint64, kind, crowd int) Script {
	s := Script{Seed: seed, Nodes: 3, Clients: 2, Workers: 2, Locks: 2, TTL: 2, Span: 20, Kinds: kind, Crowd: crowd, Operator: true}
	if seed%2 == 0 {
		s.Nodes = 1
	}
	for at := 5000; at < s.Span*1000; at += 7000 {
		s.Faults = append(s.Faults, Fault{Kind: Hold, At: at, For: 4500, Client: 1})
	}
	return s
}

// together is how a crowd is judged: once the process of a crowd is out of reach, a waiter behind
// that crowd finds a free lock only when it next asks.
var together = Switches{Patient: true}

// A crowd that reads, has permits, or waits and gives up together keeps every promise, as do the
// holders beside it.
func TestCrowds(t *testing.T) {
	var all Tally
	for seed := range uint64(6) {
		s := crowded(seed, 1+int(seed%3), 40)
		r := Run(t, s, together, false)
		all.Add(r.Tally)
		if len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
		}
	}
	if all.Crowd < 40 || all.Notified < 40 || all.Refusals < 40 {
		t.Errorf("%d held one lock together, %d were notified of a loss, %d gave up, want a crowd of each: %+v", all.Crowd, all.Notified, all.Refusals, all)
	}
	t.Logf("%+v", all)
}

// A thousand goroutines of one process that read, or that wait, keep every promise.
func TestThousand(t *testing.T) {
	for _, kind := range []int{crowdWaits, crowdReads} {
		s := crowded(2, kind, maxCrowd)
		s.TTL, s.Span, s.Faults = 3, 12, []Fault{{Kind: Hold, At: 5500, For: 7000, Client: 1}}
		r := Run(t, s, together, false)
		for _, v := range r.Violations {
			t.Error(v)
		}
		t.Logf("%+v", r.Tally)
	}
}

// The judge notices nodes that forget the leases of a crowd.
func TestCrowdsAreJudged(t *testing.T) {
	for name, c := range map[string]struct {
		kind  int
		rules []string
	}{
		"readers": {crowdReads, []string{Exclusion, ToldLate}},
		"permits": {crowdPermits, []string{Permits, Slots, ToldLate}},
		"waiters": {crowdWaits, []string{Exclusion, ToldLate}},
	} {
		t.Run(name, func(t *testing.T) {
			seen(t, func(seed uint64) Script {
				s := crowded(seed, c.kind, 20)
				s.Operator, s.Faults = false, append(s.Faults, every(2500, Fault{Kind: Forget})...)
				return s
			}, Shipped(), c.rules)
		})
	}
}

// seen checks that one of a few seeds breaks one of the rules first.
func seen(t *testing.T, script func(seed uint64) Script, sw Switches, rules []string) {
	t.Helper()
	sw.Patient, sw.PromisesOnly = true, true
	var others []string
	for seed := range uint64(20) {
		r := Run(t, script(seed), sw, false)
		if len(r.Violations) == 0 {
			continue
		}
		if v := r.Violations[0]; slices.Contains(rules, v.Rule) {
			t.Log(seed, v)
			return
		} else {
			others = append(others, v.String())
		}
	}
	t.Errorf("no seed violates any of %q; other violations: %q", rules, others)
}
