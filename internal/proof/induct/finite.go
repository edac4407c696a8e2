package induct

import (
	"fmt"
	"slices"
	"strings"
)

// A question whose answer must be "sat" asks for a model, and quantifiers keep solvers from
// finding one. Such a question is asked about a small world, without quantifiers: sorts have
// few elements, and a relation of tokens or instants has few entries at first. A model of that
// is one of the spec. A proof never uses any of this.

// finite is the world of a question for a model.
type finite struct {
	elements int                            // of each sort that a spec declares
	entries  int                            // of each relation of tokens or instants, in the first state
	rows     map[*Func]map[string][][]*Expr // those entries, by the suffix of the state
}

func newFinite(elements, entries int) *finite {
	return &finite{elements, entries, map[*Func]map[string][][]*Expr{}}
}

// sorts declares the sorts.
func (p *printer) sorts(s *Spec) {
	for _, t := range s.Sorts {
		if p.finite == nil {
			p.line("(declare-sort %s 0)", t)
			continue
		}
		var names []string
		for i := range p.elements {
			names = append(names, "("+element(t, i)+")")
		}
		p.line("(declare-datatypes ((%s 0)) ((%s)))", t, strings.Join(names, " "))
	}
}

func element(s Sort, i int) string { return fmt.Sprintf("%s%d", s, i) }

func isNumber(s Sort) bool { return s == Int || s == Real }

// wide reports whether the function is a relation of tokens or instants.
func (f *Func) wide() bool { return slices.ContainsFunc(f.Params, isNumber) }

// table defines such a relation by its entries.
func (p *printer) table(f *Func, suffix string) {
	var params, entries []string
	for i, s := range f.Params {
		params = append(params, fmt.Sprintf("(k%d %s)", i, s))
	}
	p.rows[f] = map[string][][]*Expr{}
	for i := range p.entries {
		var row []*Expr
		var equal []string
		on := fmt.Sprintf("%s%s.entry%d", f.Name, suffix, i)
		p.line("(declare-const %s Bool)", on)
		for j, s := range f.Params {
			name := fmt.Sprintf("%s.%d", on, j)
			p.line("(declare-const %s %s)", name, s)
			row = append(row, variable(Var{name, s}))
			equal = append(equal, fmt.Sprintf("(= k%d %s)", j, name))
		}
		p.rows[f][suffix] = append(p.rows[f][suffix], row)
		entries = append(entries, fmt.Sprintf("(and %s %s)", on, strings.Join(equal, " ")))
	}
	p.line("(define-fun %s%s (%s) Bool (or false %s))", f.Name, suffix, strings.Join(params, " "), strings.Join(entries, " "))
}

// addRows notes which entries a relation can have after a step.
func (p *printer) addRows(t *Step, f *Func, params map[string]*Expr, from, to string) {
	rows := slices.Clone(p.rows[f][from])
	for _, u := range t.Sets {
		if u.Func == f {
			var row []*Expr
			for _, a := range u.At {
				row = append(row, variable(Var{smt(a.substitute(params), from), a.sort}))
			}
			rows = append(rows, row)
		}
	}
	p.rows[f][to] = rows
}

// ground returns f without quantifiers.
func (p *printer) ground(f *Expr, suffix string) *Expr {
	if f.op == opForAll || f.op == opExists {
		join := opAnd
		if f.op == opExists {
			join = opOr
		}
		all := node(join, Bool, node(map[op]op{opAnd: opTrue, opOr: opFalse}[join], Bool))
		for _, terms := range p.instances(f.vars, f.args[0], f.op == opExists, suffix) {
			all.args = append(all.args, p.ground(f.args[0].substitute(terms), suffix))
		}
		return all
	}
	g := *f
	g.args = make([]*Expr, len(f.args))
	for i, a := range f.args {
		g.args[i] = p.ground(a, suffix)
	}
	return &g
}

// instances returns the values of variables that can give f the truth that is wanted: all
// elements of a sort, and of tokens and instants those in entries of a relation.
func (p *printer) instances(vars []Var, f *Expr, want bool, suffix string) (list []map[string]*Expr) {
	if len(vars) == 0 {
		return []map[string]*Expr{{}}
	}
	v := vars[0]
	var heads []map[string]*Expr
	if isNumber(v.Sort) {
		guard := guardOf(f, v, want)
		if guard == nil {
			panic("induct: " + v.Name + " in " + f.String() + " is no argument of a relation")
		}
		for _, row := range p.rows[guard.fn][suffix] {
			head := map[string]*Expr{}
			for i, a := range guard.args {
				if a.op == opVar && isNumber(a.sort) && slices.ContainsFunc(vars, func(u Var) bool { return u.Name == a.name }) {
					head[a.name] = row[i]
				}
			}
			heads = append(heads, head)
		}
	} else {
		for i := range p.elements {
			heads = append(heads, map[string]*Expr{v.Name: variable(Var{element(v.Sort, i), v.Sort})})
		}
	}
	for _, head := range heads {
		rest := slices.DeleteFunc(slices.Clone(vars), func(u Var) bool { return head[u.Name] != nil })
		for _, tail := range p.instances(rest, f, want, suffix) {
			for name, term := range head {
				tail[name] = term
			}
			list = append(list, tail)
		}
	}
	return list
}
