package induct

import (
	"fmt"
	"strings"
)

// printer writes SMT-LIB 2.6. State functions are written with the suffix of an instant,
// so that several states can stand in one file.
type printer struct {
	strings.Builder
	*finite // of a question for a model
}

func (p *printer) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// begin writes what all files begin with: the world.
func (p *printer) begin(s *Spec, words string) {
	p.line("; %s: %s", s.Name, words)
	p.line("(set-logic ALL)")
	p.sorts(s)
	for _, f := range s.Consts {
		p.declare(f, "")
	}
	for _, a := range s.Axioms {
		p.assert(a.Words, a.Formula, "")
	}
}

// state declares an arbitrary state.
func (p *printer) state(s *Spec, suffix string) {
	for _, f := range s.State {
		if p.finite != nil && f.wide() {
			p.table(f, suffix)
		} else {
			p.declare(f, suffix)
		}
	}
}

func (p *printer) declare(f *Func, suffix string) {
	sorts := make([]string, len(f.Params))
	for i, t := range f.Params {
		sorts[i] = string(t)
	}
	p.line("(declare-fun %s%s (%s) %s) ; %s", f.Name, suffix, strings.Join(sorts, " "), f.Result, f.Words)
}

func (p *printer) assert(words string, f *Expr, suffix string) {
	if p.finite != nil {
		f = p.ground(f, suffix)
	}
	p.line("; %s\n(assert %s)", words, smt(f, suffix))
}

// take writes a step from the state of one suffix to that of another. Its parameters are
// constants with the suffix of the state before.
func (p *printer) take(s *Spec, t *Step, from, to string) {
	p.line("; %s", t.Words)
	params := map[string]*Expr{}
	for _, v := range t.Params {
		name := v.Name + from + "." + t.Name
		p.line("(declare-const %s %s)", name, v.Sort)
		params[v.Name] = variable(Var{name, v.Sort})
	}
	for _, n := range t.Needs {
		p.assert(n.Words, n.Formula.substitute(params), from)
	}
	for _, f := range s.State {
		p.define(t, f, params, from, to)
		if p.finite != nil && f.wide() {
			p.addRows(t, f, params, from, to)
		}
	}
}

// define writes a state function after a step.
func (p *printer) define(t *Step, f *Func, params map[string]*Expr, from, to string) {
	keys, names, old := make([]*Expr, len(f.Params)), make([]string, len(f.Params)), &Expr{op: opApply, sort: f.Result, fn: f}
	for i, s := range f.Params {
		keys[i] = variable(Var{fmt.Sprintf("k%d", i), s})
		names[i] = fmt.Sprintf("(k%d %s)", i, s)
	}
	old.args = keys
	value := old
	for _, u := range t.Sets {
		if u.Func == f {
			value = u.at(t, keys, old).substitute(params)
		}
	}
	p.line("(define-fun %s%s (%s) %s %s)", f.Name, to, strings.Join(names, " "), f.Result, smt(value, from))
}

// at returns the value of the function after the update, at keys.
func (u Update) at(t *Step, keys []*Expr, old *Expr) *Expr {
	bound := map[string]*Expr{}
	hit := node(opAnd, Bool, node(opTrue, Bool))
	for i, a := range u.At {
		if a.op == opVar && !t.has(a.name) {
			bound[a.name] = keys[i]
		} else {
			hit.args = append(hit.args, node(opEqual, Bool, keys[i], a))
		}
	}
	return node(opIf, old.sort, hit, u.Value.substitute(bound), old)
}

// has reports whether the step has the parameter.
func (t *Step) has(name string) bool {
	for _, v := range t.Params {
		if v.Name == name {
			return true
		}
	}
	return false
}

// smt returns f in SMT-LIB.
func smt(f *Expr, suffix string) string {
	var b strings.Builder
	f.write(&b, suffix)
	return b.String()
}

func (f *Expr) write(b *strings.Builder, suffix string) {
	switch f.op {
	case opVar:
		b.WriteString(f.name)
		return
	case opNumber:
		b.WriteString(f.name)
		if f.sort == Real {
			b.WriteString(".0")
		}
		return
	case opTrue, opFalse:
		b.WriteString(string(f.op))
		return
	}
	if f.op != opApply || len(f.args) > 0 {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch {
	case f.op == opApply && f.fn.State:
		b.WriteString(f.fn.Name + suffix)
	case f.op == opApply:
		b.WriteString(f.fn.Name)
	default:
		b.WriteString(string(f.op))
	}
	if len(f.vars) > 0 {
		b.WriteString(" (")
		for i, v := range f.vars {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(b, "(%s %s)", v.Name, v.Sort)
		}
		b.WriteByte(')')
	}
	for _, a := range f.args {
		b.WriteByte(' ')
		a.write(b, suffix)
	}
}
