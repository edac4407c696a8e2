package induct

import (
	"fmt"
	"slices"
	"strings"
	"text/scanner"
)

// Parse reads a spec. The statements, in any order in which each name is declared
// before its use:
//
//	sorts Node, Attempt
//	vars n, m Node; a Attempt
//	const ttl(Attempt) Real "words"          a function of the world
//	state owner(Node, Attempt) Bool "words"  a part of the state
//	define over(n, a) = FORMULA              an abbreviation
//	axiom "words" FORMULA                    about the world
//	start "words" FORMULA                    about the first state
//	step forget(N Node, A Attempt) "words"   a step, followed by
//	    needs "words" FORMULA                    what must be so before
//	    sets owner(N, A) = FORMULA               and what is so afterwards
//	promise P1 "words" FORMULA
//	clause C1 "words" for P1 in win FORMULA  without it, win would not keep P1
//	possible "words" FORMULA                 the invariant has such a state
//	run "words" begin grant reaches FORMULA  there is such a run
//	mutant "words" breaks P1 in win          with a rule changed, win does not keep P1:
//	    drop win "words"                         without what it needs
//	    change win needs "words" FORMULA         with another need
//	    change win sets token(A) = FORMULA       with another value
//	    run begin grant win breaks P1            the change leads there, and only with it
//
// A formula has, by increasing strength: implies; or; and; not; = != < <= > >=; + -. Further
// if f then s else t, max(s, t), instant(t) for a token read as a clock, and (all a: f), (some a: f).
// Its free variables stand for all values. A statement after "[x]" belongs only to the variant
// x, with the lines below it that are indented further. Comments begin with two dashes.
func Parse(name, text, variant string) (s *Spec, err error) {
	p := &parser{spec: &Spec{Name: name}, vars: map[string]Sort{}, funcs: map[string]*Func{}, defs: map[string]definition{}}
	p.scan.Init(strings.NewReader(only(text, variant)))
	p.scan.Filename = name
	p.scan.Mode = scanner.ScanIdents | scanner.ScanInts | scanner.ScanStrings
	p.scan.Error = func(_ *scanner.Scanner, msg string) { panic(syntaxError(msg)) }
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(syntaxError)
			if !ok {
				panic(r)
			}
			s, err = nil, fmt.Errorf("induct: %s: %s", p.at, string(e))
		}
	}()
	p.next()
	for p.token != "" {
		p.statement()
	}
	return p.spec, nil
}

// only returns the text without the statements of other variants: what a line says after a
// tag, and the lines below it that are indented further.
func only(text, variant string) string {
	var b strings.Builder
	skip := -1 // the indentation of the statement that is left out
	for line := range strings.Lines(text) {
		trimmed := strings.TrimLeft(line, "\t")
		depth := len(line) - len(trimmed)
		if skip >= 0 && depth > skip {
			b.WriteByte('\n')
			continue
		}
		skip = -1
		if tag, rest, ok := strings.Cut(trimmed, "] "); ok && strings.HasPrefix(tag, "[") {
			if tag != "["+variant {
				skip = depth
				b.WriteByte('\n')
				continue
			}
			line = strings.Repeat(" ", len(line)-len(rest)) + rest
		}
		b.WriteString(line)
	}
	return b.String()
}

type syntaxError string

type definition struct {
	params []Var
	body   *Expr
}

type parser struct {
	scan   scanner.Scanner
	at     scanner.Position
	token  string
	spec   *Spec
	vars   map[string]Sort
	funcs  map[string]*Func
	defs   map[string]definition
	params []Var   // of the step
	step   *Step   // the last one
	mutant *Mutant // the last one
}

func (p *parser) fail(format string, args ...any) { panic(syntaxError(fmt.Sprintf(format, args...))) }

// next reads a token.
func (p *parser) next() {
	for {
		r := p.scan.Scan()
		p.at = p.scan.Position
		switch p.token = p.scan.TokenText(); {
		case r == scanner.EOF:
			p.token = ""
		case r == '-' && p.scan.Peek() == '-':
			for c := p.scan.Next(); c != '\n' && c != scanner.EOF; c = p.scan.Next() {
			}
			continue
		case (r == '<' || r == '>' || r == '!') && p.scan.Peek() == '=':
			p.scan.Next()
			p.token += "="
		}
		return
	}
}

// take reads the token if it is t.
func (p *parser) take(t string) bool {
	if p.token != t {
		return false
	}
	p.next()
	return true
}

func (p *parser) want(t string) {
	if !p.take(t) {
		p.fail("%q where %q is expected", p.token, t)
	}
}

func (p *parser) ident() string {
	t := p.token
	if t == "" || !isLetter(t[0]) {
		p.fail("%q where a name is expected", t)
	}
	p.next()
	return t
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func (p *parser) words() string {
	t := p.token
	if len(t) < 2 || t[0] != '"' {
		p.fail("%q where words in quotes are expected", t)
	}
	p.next()
	return t[1 : len(t)-1]
}

// list reads names.
func (p *parser) list() (names []string) {
	for {
		names = append(names, p.ident())
		if !p.take(",") {
			return names
		}
	}
}

func (p *parser) sort() Sort {
	s := Sort(p.ident())
	if s != Bool && s != Int && s != Real && !slices.Contains(p.spec.Sorts, s) {
		p.fail("no sort %s", s)
	}
	return s
}

// statement reads a statement.
func (p *parser) statement() {
	s := p.spec
	keyword := p.ident()
	if keyword != "needs" && keyword != "sets" {
		p.params = nil
	}
	switch keyword {
	case "sorts":
		for _, n := range p.list() {
			s.Sorts = append(s.Sorts, Sort(n))
		}
	case "vars":
		for more := true; more; more = p.take(";") {
			names := p.list()
			of := p.sort()
			for _, n := range names {
				p.vars[n] = of
			}
		}
	case "const":
		s.Consts = append(s.Consts, p.function(false))
	case "state":
		s.State = append(s.State, p.function(true))
	case "define":
		p.define()
	case "axiom":
		s.Axioms = append(s.Axioms, p.named())
	case "start":
		s.Initial = append(s.Initial, p.named())
	case "step":
		p.step = &Step{Name: p.ident()}
		p.want("(")
		for p.token != ")" {
			names := p.list()
			of := p.sort()
			for _, n := range names {
				p.step.Params = append(p.step.Params, Var{n, of})
			}
			p.take(",")
		}
		p.want(")")
		p.step.Words = p.words()
		p.params = p.step.Params
		s.Steps = append(s.Steps, p.step)
	case "needs":
		p.step.Needs = append(p.step.Needs, p.named())
	case "sets":
		p.step.Sets = append(p.step.Sets, p.update())
	case "promise", "clause":
		c := &Clause{Name: p.ident(), Promise: keyword == "promise"}
		c.Words = p.words()
		if p.take("for") {
			c.Needed = p.ident()
			p.want("in")
			c.By = p.ident()
		}
		c.Formula = p.closed()
		s.Clauses = append(s.Clauses, c)
	case "possible":
		s.States = append(s.States, Named{p.words(), p.boolean(p.expr())})
	case "run":
		r := p.run()
		s.Runs = append(s.Runs, *r)
	case "mutant":
		m := &Mutant{Words: p.words(), Spec: s.copy()}
		p.want("breaks")
		m.Breaks = p.ident()
		p.want("in")
		m.By = p.ident()
		p.mutant = m
		for p.change() {
		}
		s.Mutants = append(s.Mutants, m)
	default:
		p.fail("no statement begins with %q", keyword)
	}
}

func (p *parser) function(state bool) *Func {
	f := &Func{Name: p.ident(), State: state}
	if p.take("(") {
		for more := true; more; more = p.take(",") {
			f.Params = append(f.Params, p.sort())
		}
		p.want(")")
	}
	f.Result, f.Words = p.sort(), p.words()
	p.funcs[f.Name] = f
	return f
}

func (p *parser) define() {
	name := p.ident()
	var d definition
	if p.take("(") {
		for _, n := range p.list() {
			d.params = append(d.params, Var{n, p.vars[n]})
		}
		p.want(")")
	}
	p.want("=")
	d.body = p.expr()
	p.defs[name] = d
}

// change reads a line of a mutant.
func (p *parser) change() bool {
	m := p.mutant
	target := func() *Step {
		t := m.Spec.step(p.ident())
		if t == nil {
			p.fail("no such step")
		}
		p.params = t.Params
		return t
	}
	switch {
	case p.take("drop"):
		t := target()
		words := p.words()
		i := slices.IndexFunc(t.Needs, func(n Named) bool { return n.Words == words })
		if i < 0 {
			p.fail("%s does not need %q", t.Name, words)
		}
		t.Needs = slices.Delete(t.Needs, i, i+1)
	case p.take("change"):
		t := target()
		if p.take("needs") {
			t.Needs = append(t.Needs, p.named())
			break
		}
		p.want("sets")
		u := p.update()
		t.Sets = append(slices.DeleteFunc(t.Sets, func(v Update) bool { return v.Func == u.Func }), u)
	case m.Run == nil && p.take("run"):
		m.Run = p.run()
	default:
		return false
	}
	p.params = nil
	return true
}

func (p *parser) run() *Run {
	var r Run
	if p.token[0] == '"' {
		r.Words = p.words()
	}
	for p.token != "reaches" && p.token != "breaks" {
		name := p.ident()
		if p.spec.step(name) == nil {
			p.fail("no step %q", name)
		}
		r.Steps = append(r.Steps, name)
	}
	if p.take("breaks") {
		c := p.spec.clause(p.ident())
		if c == nil {
			p.fail("no such clause")
		}
		r.Reaches = node(opNot, Bool, c.Formula)
		return &r
	}
	p.want("reaches")
	r.Reaches = p.expr()
	return &r
}

func (p *parser) named() Named { return Named{p.words(), p.closed()} }

// closed reads a formula whose free variables stand for all values, except parameters.
func (p *parser) closed() *Expr {
	f := p.boolean(p.expr())
	var bound []string
	for _, v := range p.params {
		bound = append(bound, v.Name)
	}
	return quantified(opForAll, f.free(bound, nil), f)
}

func (p *parser) update() Update {
	u := Update{Func: p.funcs[p.ident()]}
	if u.Func == nil || !u.Func.State {
		p.fail("only a part of the state can be set")
	}
	if len(u.Func.Params) > 0 {
		p.want("(")
		u.At = p.args(u.Func.Params)
	}
	p.want("=")
	u.Value = p.as(u.Func.Result, p.expr())
	return u
}

// args reads arguments of those sorts, and the closing parenthesis.
func (p *parser) args(sorts []Sort) (list []*Expr) {
	for i, s := range sorts {
		if i > 0 {
			p.want(",")
		}
		list = append(list, p.as(s, p.expr()))
	}
	p.want(")")
	return list
}

// as returns f, which must be of a sort. A number is of the sort that is expected.
func (p *parser) as(s Sort, f *Expr) *Expr {
	if f.op == opNumber && s == Real {
		f.sort = Real
	}
	if f.sort != s {
		p.fail("%s is %s, not %s", f, f.sort, s)
	}
	return f
}

func (p *parser) boolean(f *Expr) *Expr { return p.as(Bool, f) }

// both returns two terms of one sort.
func (p *parser) both(f, g *Expr) (*Expr, *Expr) {
	if f.op == opNumber {
		f.sort = g.sort
	}
	return f, p.as(f.sort, g)
}

func (p *parser) expr() *Expr {
	f := p.or()
	if p.take("implies") {
		f = node(opImply, Bool, p.boolean(f), p.boolean(p.expr()))
	}
	return f
}

func (p *parser) or() *Expr  { return p.joined("or", opOr, p.and) }
func (p *parser) and() *Expr { return p.joined("and", opAnd, p.not) }

func (p *parser) joined(word string, o op, part func() *Expr) *Expr {
	f := part()
	if p.token != word {
		return f
	}
	f = node(o, Bool, p.boolean(f))
	for p.take(word) {
		f.args = append(f.args, p.boolean(part()))
	}
	return f
}

func (p *parser) not() *Expr {
	if p.take("not") {
		return node(opNot, Bool, p.boolean(p.not()))
	}
	f := p.sum()
	t := p.token
	switch t {
	case "=", "!=", "<", "<=", ">", ">=":
	default:
		return f
	}
	p.next()
	f, g := p.both(f, p.sum())
	switch t {
	case "=":
		return node(opEqual, Bool, f, g)
	case "!=":
		return node(opNot, Bool, node(opEqual, Bool, f, g))
	case "<":
		return node(opLess, Bool, f, g)
	case "<=":
		return node(opAtMost, Bool, f, g)
	case ">":
		return node(opLess, Bool, g, f)
	}
	return node(opAtMost, Bool, g, f)
}

func (p *parser) sum() *Expr {
	f := p.term()
	for p.token == "+" || p.token == "-" {
		o := op(p.token)
		p.next()
		g := p.term()
		f, g = p.both(f, g)
		f = node(o, f.sort, f, g)
	}
	return f
}

func (p *parser) term() *Expr {
	if p.take("(") {
		f := p.expr()
		p.want(")")
		return f
	}
	if t := p.token; t != "" && t[0] >= '0' && t[0] <= '9' {
		p.next()
		return &Expr{op: opNumber, sort: Int, name: t}
	}
	name := p.ident()
	switch name {
	case "true", "false":
		return node(op(name), Bool)
	case "all", "some":
		var vars []Var
		for _, n := range p.list() {
			of, ok := p.vars[n]
			if !ok {
				p.fail("no variable %q", n)
			}
			vars = append(vars, Var{n, of})
		}
		p.want(":")
		o := opForAll
		if name == "some" {
			o = opExists
		}
		return quantified(o, vars, p.boolean(p.expr()))
	case "if":
		c := p.boolean(p.expr())
		p.want("then")
		f := p.expr()
		p.want("else")
		f, g := p.both(f, p.expr())
		return node(opIf, f.sort, c, f, g)
	case "max":
		p.want("(")
		f := p.expr()
		p.want(",")
		f, g := p.both(f, p.expr())
		p.want(")")
		return node(opIf, f.sort, node(opLess, Bool, f, g), g, f)
	case "instant":
		p.want("(")
		return node(opReal, Real, p.args([]Sort{Int})...)
	}
	if i := slices.IndexFunc(p.params, func(v Var) bool { return v.Name == name }); i >= 0 {
		return variable(p.params[i])
	}
	if of, ok := p.vars[name]; ok {
		return variable(Var{name, of})
	}
	if d, ok := p.defs[name]; ok {
		terms := map[string]*Expr{}
		if len(d.params) > 0 {
			p.want("(")
			var sorts []Sort
			for _, v := range d.params {
				sorts = append(sorts, v.Sort)
			}
			for i, a := range p.args(sorts) {
				terms[d.params[i].Name] = a
			}
		}
		return d.body.substitute(terms)
	}
	f := p.funcs[name]
	if f == nil {
		p.fail("%q is not declared", name)
	}
	e := &Expr{op: opApply, sort: f.Result, fn: f}
	if len(f.Params) > 0 {
		p.want("(")
		e.args = p.args(f.Params)
	}
	return e
}
