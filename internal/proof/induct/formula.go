package induct

import (
	"fmt"
	"strings"
)

// Sort is a sort of values: Bool, Int (tokens), Real (instants and durations), or one that
// a spec declares, whose values have no structure.
type Sort string

// The sorts that need no declaration.
const (
	Bool Sort = "Bool"
	Int  Sort = "Int"
	Real Sort = "Real"
)

// Var is a variable: of a quantifier, or a parameter of a step.
type Var struct {
	Name string
	Sort Sort
}

// Func is a function of a spec: a constant of the world, or a part of the state.
type Func struct {
	Name   string
	Params []Sort
	Result Sort
	Words  string
	State  bool
}

// op is what a node of a formula does with its arguments. Operators are named as in SMT-LIB.
type op string

const (
	opVar    op = "var"    // name
	opNumber op = "number" // name, in decimal
	opApply  op = "apply"  // fn of the arguments
	opForAll op = "forall" // vars, one argument
	opExists op = "exists"
	opTrue   op = "true"
	opFalse  op = "false"
	opNot    op = "not"
	opAnd    op = "and"
	opOr     op = "or"
	opImply  op = "=>"
	opEqual  op = "="
	opLess   op = "<"
	opAtMost op = "<="
	opPlus   op = "+"
	opMinus  op = "-"
	opIf     op = "ite"
	opReal   op = "to_real" // the instant that a token names, read as a clock
)

// Expr is a formula or a term: a tree.
type Expr struct {
	op   op
	sort Sort
	name string
	fn   *Func
	vars []Var
	args []*Expr
}

func node(o op, s Sort, args ...*Expr) *Expr { return &Expr{op: o, sort: s, args: args} }

func variable(v Var) *Expr { return &Expr{op: opVar, sort: v.Sort, name: v.Name} }

// quantified returns f for all, or for some, values of vars, and f itself if there are none.
func quantified(o op, vars []Var, f *Expr) *Expr {
	if len(vars) == 0 {
		return f
	}
	return &Expr{op: o, sort: Bool, vars: vars, args: []*Expr{f}}
}

// substitute returns f with terms in place of free variables.
func (f *Expr) substitute(terms map[string]*Expr) *Expr {
	if f.op == opVar {
		if t, ok := terms[f.name]; ok {
			return t
		}
		return f
	}
	g := *f
	g.args = make([]*Expr, len(f.args))
	for i, a := range f.args {
		g.args[i] = a.substitute(terms)
	}
	return &g
}

// free appends the free variables of f to list, each once.
func (f *Expr) free(bound []string, list []Var) []Var {
	if f.op == opVar {
		for _, b := range bound {
			if b == f.name {
				return list
			}
		}
		for _, v := range list {
			if v.Name == f.name {
				return list
			}
		}
		return append(list, Var{f.name, f.sort})
	}
	for _, v := range f.vars {
		bound = append(bound[:len(bound):len(bound)], v.Name)
	}
	for _, a := range f.args {
		list = a.free(bound, list)
	}
	return list
}

// words are how operators read in a spec.
var words = map[op]string{opAnd: "and", opOr: "or", opImply: "implies", opEqual: "=", opLess: "<", opAtMost: "<=", opPlus: "+", opMinus: "-"}

// String returns f as it reads in a spec, with all parentheses.
func (f *Expr) String() string {
	each := func(sep string) string {
		list := make([]string, len(f.args))
		for i, a := range f.args {
			list[i] = a.String()
		}
		return strings.Join(list, sep)
	}
	switch f.op {
	case opVar, opNumber:
		return f.name
	case opTrue, opFalse:
		return string(f.op)
	case opApply:
		if len(f.args) == 0 {
			return f.fn.Name
		}
		return f.fn.Name + "(" + each(", ") + ")"
	case opReal:
		return "instant(" + each("") + ")"
	case opNot:
		return "not " + each("")
	case opIf:
		return fmt.Sprintf("(if %s then %s else %s)", f.args[0], f.args[1], f.args[2])
	case opForAll, opExists:
		names := make([]string, len(f.vars))
		for i, v := range f.vars {
			names[i] = v.Name
		}
		return fmt.Sprintf("(%s %s: %s)", map[op]string{opForAll: "all", opExists: "some"}[f.op], strings.Join(names, ", "), f.args[0])
	}
	return "(" + each(" "+words[f.op]+" ") + ")"
}
