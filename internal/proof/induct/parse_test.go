package induct

import (
	"strings"
	"testing"
)

const counterSpec = `
sorts Node
vars n, m Node; t Int; e Real
state count(Node) Int "a counter"
state said(Node, Int) Bool "what a node said"
start "zero" count(n) = 0
start "silence" not said(n, t)
step tick(N Node) "it counts"
	needs "room" count(N) < 9
	sets count(N) = count(N) + 1
	[loud] sets said(N, count(N)) = true
promise P "small" count(n) <= 9
`

func TestParse(t *testing.T) {
	s, err := Parse("counter.spec", counterSpec, "loud")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Steps) != 1 || len(s.Steps[0].Sets) != 2 || len(s.Clauses) != 1 {
		t.Errorf("%d steps, %d clauses", len(s.Steps), len(s.Clauses))
	}
	if got, want := s.Clauses[0].Formula.String(), "(all n: (count(n) <= 9))"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if s, err = Parse("counter.spec", counterSpec, "quiet"); err != nil || len(s.Steps[0].Sets) != 1 {
		t.Errorf("a statement of another variant counts: %v", err)
	}
}

// A mistake is reported with its line.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{`promise Q "wrong sort" count(n) = e`, "e is Real, not Int"},
		{`promise Q "no function" cuont(n) = 0`, `"cuont" is not declared`},
		{`promise Q "no truth" count(n)`, "count(n) is Int, not Bool"},
		{`promise Q "arguments" said(n) `, `")" where "," is expected`},
		{`mutant "m" breaks P in tick drop tick "roam"`, `tick does not need "roam"`},
		{`rule Q`, `no statement begins with "rule"`},
	} {
		_, err := Parse("counter.spec", counterSpec+c.line, "")
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "counter.spec:13:") {
			t.Errorf("%s: %v, want line 13 and %q", c.line, err, c.want)
		}
	}
}

// The printed step defines the next state, and a question for a model has no
// quantifier.
func TestPrint(t *testing.T) {
	s, err := Parse("counter.spec", counterSpec, "loud")
	if err != nil {
		t.Fatal(err)
	}
	proof := s.keeps(s.Steps[0], s.Clauses[0], nil, nil).String()
	for _, want := range []string{
		"(declare-sort Node 0)",
		"(assert (forall ((n Node)) (<= (count n) 9)))",
		"(declare-const N.tick Node)\n; room\n(assert (< (count N.tick) 9))",
		"(define-fun count.next ((k0 Node)) Int (ite (and true (= k0 N.tick)) (+ (count N.tick) 1) (count k0)))",
		"(assert (not (forall ((n Node)) (<= (count.next n) 9))))",
	} {
		if !strings.Contains(proof, want) {
			t.Errorf("no %s in\n%s", want, proof)
		}
	}
	if model := s.keeps(s.Steps[0], s.Clauses[0], nil, newFinite(2, 1)).String(); strings.Contains(model, "forall") || strings.Contains(model, "exists") {
		t.Errorf("a quantifier in\n%s", model)
	}
}

// Every clause that is no promise says what it is needed for, so that this is asked.
func TestClausesAreNeeded(t *testing.T) {
	for _, s := range Specs() {
		for _, c := range s.Clauses {
			if !c.Promise && (s.step(c.By) == nil || s.clause(c.Needed) == nil) {
				t.Errorf("%s: %s is needed for %q in %q, which are no clause and step", s.Name, c.Name, c.Needed, c.By)
			}
		}
		for _, m := range s.Mutants {
			if s.step(m.By) == nil || s.clause(m.Breaks) == nil {
				t.Errorf("%s: mutant %q breaks %q in %q, which are no clause and step", s.Name, m.Words, m.Breaks, m.By)
			}
		}
	}
}
