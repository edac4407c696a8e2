package sim

import "testing"

// attended has an operator end leases all through a busy run, of locks of these kinds.
func attended(seed uint64, kinds int) Script {
	s := busy(seed, every(4100, Fault{Kind: Hold, For: 1500, Client: 1})...)
	s.Workers, s.Operator, s.Kinds = 2, true, kinds
	return s
}

// interrupted is attended with faults of several kinds, by the seed.
func interrupted(seed uint64) Script {
	s := attended(seed, int(seed/5%5))
	switch seed % 5 {
	case 1:
		s.Faults = every(2100, Fault{Kind: Deaf, For: 1500, Client: 1})
	case 2:
		s.Faults = every(2500, Fault{Kind: Pause, For: 1500, Client: 1, Size: int(seed % 2)})
	case 3: // operators that are cut off from some nodes in the middle of what they do
		s.Faults = append(every(2900, Fault{Kind: Hold, For: 1900, Client: s.Clients + 1}), every(2300, Fault{Kind: Deaf, For: 1500, Client: s.Clients + 2})...)
		for i := range s.Faults {
			s.Faults[i].Node = 1 + i%s.Nodes
		}
	case 4:
		s = AnyOfSeed(seed)
		s.Operator = true
	}
	return s
}

// A lease that is broken ends as any other, and the operator ends no other than the one that was
// shown. A holder whose lock was freed at once is refused by the resource. A client whose lease was
// ended before it knew of it asks on, and is granted the lock once more.
func TestOperator(t *testing.T) {
	n := *seeds
	if n == 0 {
		n = 24
		if testing.Short() { // as in make test
			n = 8
		}
	}
	var all Tally
	for i := range n {
		s := interrupted(*first + uint64(i))
		r := Run(t, s, Shipped(), false)
		all.Add(r.Tally)
		if len(r.Violations) > 0 {
			report(t, "-script='"+s.String()+"'", s, r)
		}
	}
	if all.Named == 0 || all.Broken == 0 || all.Refused == 0 || all.Regained == 0 && n >= 24 {
		t.Errorf("%d leases named, %d found broken, %d writes refused, %d leases had again, want some of each: %+v", all.Named, all.Broken, all.Refused, all.Regained, all)
	}
	t.Logf("%+v", all)
}

// The judge notices clients and operators that do something else than they say.
func TestOperatorIsJudged(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches Switches
		rules    []string
	}{
		{"an owner of two attempts", Switches{Passing: true}, []string{Owner}},
		{"an operator that does not wait", Switches{Hasty: true}, []string{Exclusion, ToldLate}},
		{"an operator that ends the next lease", Switches{Careless: true}, []string{Answers, Exclusion, ToldLate}},
		{"a client that ends leases of others, which they have again", Switches{Disguised: true}, []string{Orphan}},
		{"nodes that end another lease for an operator", Switches{Blunt: true}, []string{Exclusion, ToldLate}},
	} {
		t.Run(c.name, func(t *testing.T) {
			seen(t, func(seed uint64) Script { return attended(seed, 0) }, c.switches, c.rules)
		})
	}
}
