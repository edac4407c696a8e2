package induct

// Spec is a protocol, the promises that it makes, and an invariant that implies them.
type Spec struct {
	Name    string
	Sorts   []Sort
	Consts  []*Func
	Axioms  []Named
	State   []*Func
	Initial []Named
	Steps   []*Step
	Clauses []*Clause
	States  []Named // that the invariant has, so that it is not one of few states
	Mutants []*Mutant
	Runs    []Run
}

// Named is a formula with no free variables except the parameters of its step, in words.
type Named struct {
	Words   string
	Formula *Expr
}

// Step is what can happen at once: if all that it needs is so, it sets parts of the state.
type Step struct {
	Name   string
	Words  string
	Params []Var
	Needs  []Named
	Sets   []Update
}

// Update sets a state function: where its arguments are those of At, to Value, and elsewhere
// to what it was. A variable of At that is no parameter of the step stands for any argument.
type Update struct {
	Func  *Func
	At    []*Expr
	Value *Expr
}

// Clause is a part of the invariant.
type Clause struct {
	Name    string
	Promise bool // what the protocol is for, and not only what the proof needs
	Named
	// Without this clause, step KeepsNot does not keep the clause Needed. Both are empty
	// for a promise.
	Needed, By string
}

// Mutant is a spec with a rule changed: its step By must not keep the clause Breaks.
type Mutant struct {
	Words      string
	Breaks, By string
	Spec       *Spec
	Run        *Run // from the start to a broken promise, if there is one
}

// Run is a sequence of steps, with any arguments, from a state of the start to one in
// which Reaches holds.
type Run struct {
	Words   string
	Steps   []string
	Reaches *Expr
}

// step returns the step of that name, or nil.
func (s *Spec) step(name string) *Step {
	for _, t := range s.Steps {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// clause returns the clause of that name, or nil.
func (s *Spec) clause(name string) *Clause {
	for _, c := range s.Clauses {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// copy returns a spec whose steps can be changed.
func (s *Spec) copy() *Spec {
	c := *s
	c.Steps = make([]*Step, len(s.Steps))
	for i, t := range s.Steps {
		u := *t
		u.Needs, u.Sets = append([]Named(nil), t.Needs...), append([]Update(nil), t.Sets...)
		c.Steps[i] = &u
	}
	return &c
}
