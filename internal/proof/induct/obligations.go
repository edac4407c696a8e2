package induct

import "fmt"

// Kind is why a question is asked.
type Kind string

// The kinds of question, and the answers that they must have.
const (
	Obligation Kind = "obligation" // unsat: the start and each step keep each clause
	Mutation   Kind = "mutant"     // sat: with a rule changed, a step does not
	Necessity  Kind = "necessity"  // sat: without a clause, a step does not keep another one
	Possible   Kind = "possible"   // sat: the invariant has such a state, or a step from one
	Reachable  Kind = "reachable"  // sat: there is a run from the start
	Impossible Kind = "impossible" // unsat: the run of a mutant needs the change
)

// Question is a file for a solver, and the answer that it must give.
type Question struct {
	Kind  Kind
	Words string
	Want  string        // "sat" or "unsat"
	SMT   func() string // in SMT-LIB 2.6
}

// Questions returns all that is to be asked about a spec.
func (s *Spec) Questions() (list []Question) {
	add := func(k Kind, words string, print func() *printer) {
		want := "sat"
		if k == Obligation || k == Impossible {
			want = "unsat"
		}
		list = append(list, Question{k, s.Name + ": " + words, want, func() string {
			p := print()
			p.line("(check-sat)")
			return p.String()
		}})
	}
	for _, c := range s.Clauses {
		add(Obligation, fmt.Sprintf("the start has %s (%s)", c.Name, c.Words), func() *printer { return s.starts(c) })
	}
	for _, t := range s.Steps {
		for _, c := range s.Clauses {
			add(Obligation, fmt.Sprintf("%s keeps %s (%s)", t.Name, c.Name, c.Words), func() *printer { return s.keeps(t, c, nil, nil) })
		}
	}
	for _, t := range s.Steps {
		add(Possible, t.Name+" can be taken", func() *printer { return s.can(t) })
	}
	for _, f := range s.States {
		add(Possible, "there is a state with "+f.Words, func() *printer { return s.has(f) })
	}
	for _, c := range s.Clauses {
		if !c.Promise {
			add(Necessity, fmt.Sprintf("without %s, %s does not keep %s", c.Name, c.By, c.Needed), func() *printer {
				return s.keeps(s.step(c.By), s.clause(c.Needed), c, small())
			})
		}
	}
	for _, r := range s.Runs {
		add(Reachable, r.Words, func() *printer { return s.runs(r, newFinite(3, 0)) })
	}
	for _, m := range s.Mutants {
		add(Mutation, fmt.Sprintf("%s: %s does not keep %s", m.Words, m.By, m.Breaks), func() *printer {
			return m.Spec.keeps(m.Spec.step(m.By), s.clause(m.Breaks), nil, small())
		})
		if m.Run != nil {
			add(Reachable, m.Words+": a run breaks it", func() *printer { return m.Spec.runs(*m.Run, newFinite(3, 0)) })
			add(Impossible, m.Words+": the same run without the change does not", func() *printer { return s.runs(*m.Run, nil) })
		}
	}
	return list
}

// small is a world that is large enough for a step that does not keep a clause.
func small() *finite { return newFinite(3, 3) }

func (p *printer) invariant(s *Spec, without *Clause) {
	p.state(s, "")
	for _, c := range s.Clauses {
		if c != without {
			p.assert(c.Name+" "+c.Words, c.Formula, "")
		}
	}
}

// can asks for a state of the invariant from which the step can be taken.
func (s *Spec) can(t *Step) *printer {
	p := &printer{finite: small()}
	p.begin(s, t.Words)
	p.invariant(s, nil)
	p.take(s, t, "", ".next")
	return p
}

// has asks for a state of the invariant in which f holds.
func (s *Spec) has(f Named) *printer {
	p := &printer{finite: small()}
	p.begin(s, f.Words)
	p.invariant(s, nil)
	p.assert(f.Words, f.Formula, "")
	return p
}

// starts asks for a state of the start in which the clause does not hold.
func (s *Spec) starts(c *Clause) *printer {
	p := &printer{}
	p.begin(s, "the start has "+c.Name)
	p.state(s, "")
	for _, f := range s.Initial {
		p.assert(f.Words, f.Formula, "")
	}
	p.assert("not "+c.Words, node(opNot, Bool, c.Formula), "")
	return p
}

// keeps asks for a state of the invariant, perhaps without a clause, from which the step
// leads to one in which the clause does not hold.
func (s *Spec) keeps(t *Step, c, without *Clause, in *finite) *printer {
	p := &printer{finite: in}
	p.begin(s, t.Name+" keeps "+c.Name)
	p.invariant(s, without)
	p.take(s, t, "", ".next")
	p.assert("not "+c.Words, node(opNot, Bool, c.Formula), ".next")
	return p
}

// runs asks for a run.
func (s *Spec) runs(r Run, in *finite) *printer {
	p := &printer{finite: in}
	p.begin(s, r.Words)
	p.state(s, "0")
	for _, f := range s.Initial {
		p.assert(f.Words, f.Formula, "0")
	}
	for i, name := range r.Steps {
		p.take(s, s.step(name), fmt.Sprint(i), fmt.Sprint(i+1))
	}
	p.assert("the last state", r.Reaches, fmt.Sprint(len(r.Steps)))
	return p
}
