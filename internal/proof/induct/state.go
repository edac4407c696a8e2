package induct

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// World is what a run takes place in: the functions of a spec that no step changes.
type World struct {
	Nodes int
	// TTL is how long a node keeps a lease of the attempt at least, and a client uses it at
	// most, by the clock of the run.
	TTL     func(attempt int) time.Duration
	Reads   func(attempt int) bool // the attempt is a reader's; nil: none is
	Longest time.Duration          // no TTL is longer
	// In the variant "floor", Instant is the instant that a token is for a node's clock, and
	// Error is how far node clocks are from the time, both ways.
	Instant func(token uint64) int64
	Error   time.Duration
}

// Event is a step with its arguments, at an instant of the run, in nanoseconds.
type Event struct {
	At   int64
	Step string
	Args []Value
}

// Value is a value of any sort: the number of a node or an attempt, a set of nodes, a
// token, an instant, or 0 and 1 for false and true.
type Value int64

// Args makes the arguments of an event from any integers, such as tokens and instants.
func Args[T ~int | ~int64 | ~uint64](args ...T) []Value {
	list := make([]Value, len(args))
	for i, a := range args {
		list[i] = Value(a)
	}
	return list
}

// State is a state of a run.
type State struct {
	spec   *Spec
	world  World
	tables map[*Func]*table
	seen   map[Sort]map[Value]bool // the values that events had, of a sort without an end
	env    []binding
}

// binding is the value of a variable.
type binding struct {
	name  string
	value Value
}

// key has the arguments of a state function, and zeros.
type key [4]Value

// table has the values of a state function that are not 0, by the first two arguments.
type table struct {
	rows map[[2]Value][]cell
}

type cell struct {
	key   key
	value Value
}

func (t *table) get(k key) Value {
	for _, c := range t.rows[[2]Value{k[0], k[1]}] {
		if c.key == k {
			return c.value
		}
	}
	return 0
}

func (t *table) set(k key, v Value) {
	at := [2]Value{k[0], k[1]}
	row := t.rows[at]
	i := slices.IndexFunc(row, func(c cell) bool { return c.key == k })
	switch {
	case i >= 0 && v != 0:
		row[i].value = v
		return
	case i >= 0:
		row = slices.Delete(row, i, i+1)
	case v != 0:
		row = append(row, cell{k, v})
	}
	if len(row) == 0 {
		delete(t.rows, at)
		return
	}
	t.rows[at] = row
}

// Start returns the first state: nothing has happened.
func (s *Spec) Start(w World) *State {
	st := &State{spec: s, world: w, tables: map[*Func]*table{}, seen: map[Sort]map[Value]bool{}}
	for _, f := range s.State {
		st.tables[f] = &table{map[[2]Value][]cell{}}
		if f.Name == "crashed" { // no quarantine is left of an earlier run
			for n := range w.Nodes {
				st.tables[f].set(key{Value(n)}, -Value(w.Longest))
			}
		}
	}
	return st
}

// Refusal is the error of an event that is no allowed step.
type Refusal struct {
	Event  Event
	Needs  string // what the step needs and does not have, in the words of the spec
	Detail string // the formula, and the values of its parts
	what   string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s at %v: it is not so that %s\n\t%s", r.what, time.Duration(r.Event.At), r.Needs, r.Detail)
}

// Apply takes a step. If the event is not allowed, the error is a *Refusal, and the state stays
// as before, except for the time. Any other error is a mistake in the event.
func (st *State) Apply(e Event) error {
	t := st.spec.step(e.Step)
	if t == nil || len(t.Params) != len(e.Args) {
		return fmt.Errorf("induct: the spec has no step %s with %d arguments", e.Step, len(e.Args))
	}
	if pass := st.spec.step("pass"); pass != nil && t != pass {
		if err := st.take(e, pass, []Value{Value(e.At)}); err != nil {
			return err
		}
	}
	return st.take(e, t, e.Args)
}

func (st *State) take(e Event, t *Step, args []Value) error {
	st.env = st.env[:0]
	for i, v := range t.Params {
		st.env = append(st.env, binding{v.Name, args[i]})
		if err := st.see(v, args[i]); err != nil {
			return fmt.Errorf("induct: %s: %w", e.Step, err)
		}
	}
	for _, n := range t.Needs {
		if st.eval(n.Formula) == 0 {
			return &Refusal{Event: e, Needs: n.Words, Detail: st.explain(n.Formula), what: st.describe(t, args)}
		}
	}
	var changes []func()
	for _, u := range t.Sets {
		changes = append(changes, st.update(t, u)...)
	}
	for _, c := range changes {
		c()
	}
	return nil
}

// see checks that a value is of the sort, and remembers it.
func (st *State) see(v Var, x Value) error {
	switch {
	case v.Sort == "Node" && (x < 0 || int(x) >= st.world.Nodes):
		return fmt.Errorf("%s: no node has the number %d", v.Name, x)
	case v.Sort == "Quorum" && (x < 0 || x>>st.world.Nodes != 0 || 2*ones(x) <= st.world.Nodes):
		return fmt.Errorf("%s: %b is no majority of %d nodes", v.Name, x, st.world.Nodes)
	case v.Sort == Bool || v.Sort == "Node":
		return nil
	}
	if st.seen[v.Sort] == nil {
		st.seen[v.Sort] = map[Value]bool{}
	}
	st.seen[v.Sort][x] = true
	return nil
}

func ones(x Value) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

// update returns the changes to make.
func (st *State) update(t *Step, u Update) (changes []func()) {
	tab := st.tables[u.Func]
	fixed := true
	for _, a := range u.At {
		fixed = fixed && (a.op != opVar || t.has(a.name))
	}
	if fixed {
		var k key
		for i, a := range u.At {
			k[i] = st.eval(a)
		}
		v := st.eval(u.Value)
		return []func(){func() { tab.set(k, v) }}
	}
	// Where a variable stands for any argument, the value of what was not 0 changes; what
	// was 0 stays so in all specs.
	for _, row := range tab.rows {
		for _, c := range row {
			depth := len(st.env)
			if st.match(u.At, c.key, t) {
				v, k := st.eval(u.Value), c.key
				changes = append(changes, func() { tab.set(k, v) })
			}
			st.env = st.env[:depth]
		}
	}
	return changes
}

// match reports whether a pattern is that of a key, and binds its variables.
func (st *State) match(at []*Expr, k key, t *Step) bool {
	for i, a := range at {
		if a.op == opVar && !t.has(a.name) {
			st.env = append(st.env, binding{a.name, k[i]})
		} else if st.eval(a) != k[i] {
			return false
		}
	}
	return true
}

func truth(b bool) Value {
	if b {
		return 1
	}
	return 0
}

// eval returns the value of f.
func (st *State) eval(f *Expr) Value {
	switch f.op {
	case opVar:
		for i := len(st.env) - 1; i >= 0; i-- {
			if st.env[i].name == f.name {
				return st.env[i].value
			}
		}
		panic("induct: " + f.name + " has no value")
	case opNumber:
		n, _ := strconv.ParseInt(f.name, 10, 64)
		return Value(n)
	case opTrue:
		return 1
	case opFalse:
		return 0
	case opApply:
		var k key
		for i, a := range f.args {
			k[i] = st.eval(a)
		}
		if f.fn.State {
			return st.tables[f.fn].get(k)
		}
		return st.constant(f.fn, k)
	case opReal:
		return Value(st.world.Instant(uint64(st.eval(f.args[0]))))
	case opForAll:
		return truth(st.search(f.vars, f.args[0], false) == nil)
	case opExists:
		return truth(st.search(f.vars, f.args[0], true) != nil)
	case opIf:
		if st.eval(f.args[0]) != 0 {
			return st.eval(f.args[1])
		}
		return st.eval(f.args[2])
	case opAnd:
		for _, a := range f.args {
			if st.eval(a) == 0 {
				return 0
			}
		}
		return 1
	case opOr:
		for _, a := range f.args {
			if st.eval(a) != 0 {
				return 1
			}
		}
		return 0
	case opNot:
		return 1 - st.eval(f.args[0])
	case opImply:
		if st.eval(f.args[0]) == 0 {
			return 1
		}
		return st.eval(f.args[1])
	}
	a, b := st.eval(f.args[0]), st.eval(f.args[1])
	switch f.op {
	case opEqual:
		return truth(a == b)
	case opLess:
		return truth(a < b)
	case opAtMost:
		return truth(a <= b)
	case opPlus:
		return a + b
	}
	return a - b
}

// constant returns the value of a function of the world.
func (st *State) constant(f *Func, k key) Value {
	switch f.Name {
	case "member":
		return k[1] >> k[0] & 1
	case "ttl":
		return Value(st.world.TTL(int(k[0])))
	case "reads":
		return truth(st.world.Reads != nil && st.world.Reads(int(k[0])))
	case "knowsOld", "ofOld":
		return 1 // a run has one list of nodes
	case "knowsNew", "ofNew":
		return 0
	case "longest":
		return Value(st.world.Longest)
	case "error":
		return Value(st.world.Error)
	}
	panic("induct: a run has no " + f.Name)
}

// search returns values of the variables for which f has the truth that is wanted, or nil.
func (st *State) search(vars []Var, f *Expr, want bool) []Value {
	if len(vars) == 0 {
		if st.eval(f) == truth(want) {
			return []Value{}
		}
		return nil
	}
	depth, v := len(st.env), vars[0]
	for _, x := range st.candidates(v, vars, f, want) {
		st.env = append(st.env, binding{v.Name, x})
		rest := st.search(vars[1:], f, want)
		st.env = st.env[:depth]
		if rest != nil {
			return append([]Value{x}, rest...)
		}
	}
	return nil
}

// candidates returns the values of a variable that can give f the truth that is wanted. If
// that takes a true application of a relation to the variable, few do.
func (st *State) candidates(v Var, unbound []Var, f *Expr, want bool) (list []Value) {
	if v.Sort == "Node" {
		for i := range st.world.Nodes {
			list = append(list, Value(i))
		}
		return list
	}
	guard := guardOf(f, v, want)
	if guard == nil {
		for x := range st.seen[v.Sort] {
			list = append(list, x)
		}
		slices.Sort(list)
		return list
	}
	var k key
	var known [4]bool
	for i, a := range guard.args {
		if a.op != opVar || !slices.ContainsFunc(unbound, func(u Var) bool { return u.Name == a.name }) {
			k[i], known[i] = st.eval(a), true
		}
	}
	take := func(row []cell) {
		for _, c := range row {
			fits := true
			for i := range guard.args {
				fits = fits && (!known[i] || c.key[i] == k[i])
			}
			if !fits {
				continue
			}
			for i, a := range guard.args {
				if a.op == opVar && a.name == v.Name && !slices.Contains(list, c.key[i]) {
					list = append(list, c.key[i])
				}
			}
		}
	}
	if tab := st.tables[guard.fn]; known[0] && (known[1] || len(guard.args) < 2) {
		take(tab.rows[[2]Value{k[0], k[1]}])
	} else {
		for _, row := range tab.rows {
			take(row)
		}
	}
	slices.Sort(list)
	return list
}

// guardOf returns an application of a relation of the state to v that is true whenever f
// has the truth that is wanted, or nil.
func guardOf(f *Expr, v Var, want bool) *Expr {
	switch {
	case f.op == opApply && want && f.fn.State && f.sort == Bool:
		if slices.ContainsFunc(f.args, func(a *Expr) bool { return a.op == opVar && a.name == v.Name }) &&
			!slices.ContainsFunc(f.args, func(a *Expr) bool { return a.op != opVar && !isGround(a) }) {
			return f
		}
	case f.op == opNot:
		return guardOf(f.args[0], v, !want)
	case f.op == opAnd && want, f.op == opOr && !want:
		for _, a := range f.args {
			if g := guardOf(a, v, want); g != nil {
				return g
			}
		}
	case f.op == opImply && !want:
		if g := guardOf(f.args[0], v, true); g != nil {
			return g
		}
		return guardOf(f.args[1], v, false)
	}
	return nil
}

// isGround reports whether f has no variables of its own; those that are bound further out
// have values.
func isGround(f *Expr) bool {
	return f.op == opNumber || f.op == opApply && !slices.ContainsFunc(f.args, func(a *Expr) bool { return a.op != opVar })
}

// describe shows a step with its arguments.
func (st *State) describe(t *Step, args []Value) string {
	list := make([]string, len(args))
	for i, v := range t.Params {
		list[i] = st.show(v.Sort, args[i])
	}
	return fmt.Sprintf("%s(%s)", t.Name, strings.Join(list, ", "))
}

func (st *State) show(s Sort, x Value) string {
	switch s {
	case Bool:
		return fmt.Sprint(x != 0)
	case Real:
		return time.Duration(x).String()
	case Int:
		return fmt.Sprint(int64(x))
	case "Quorum":
		var nodes []string
		for i := range st.world.Nodes {
			if x>>i&1 != 0 {
				nodes = append(nodes, fmt.Sprint(i))
			}
		}
		return "nodes " + strings.Join(nodes, "+")
	}
	return strings.ToLower(string(s)) + " " + fmt.Sprint(int64(x))
}

// explain shows a formula that is false: for which values, and what its parts are.
func (st *State) explain(f *Expr) string {
	text, depth := f.String(), len(st.env)
	defer func() { st.env = st.env[:depth] }()
	var facts []string
	for f.op == opForAll {
		for i, x := range st.search(f.vars, f.args[0], false) {
			st.env = append(st.env, binding{f.vars[i].Name, x})
			facts = append(facts, f.vars[i].Name+" is "+st.show(f.vars[i].Sort, x))
		}
		f = f.args[0]
	}
	st.parts(f, &facts)
	if len(facts) > 0 {
		text += "; " + strings.Join(facts, ", ")
	}
	return text
}

// parts adds the values of the applications in f that have no variables of quantifiers.
func (st *State) parts(f *Expr, facts *[]string) {
	if f.op == opForAll || f.op == opExists {
		return
	}
	if f.op == opApply && f.fn.Name != "member" {
		shown := f.fn.Name
		if len(f.args) > 0 {
			list := make([]string, len(f.args))
			for i, a := range f.args {
				list[i] = st.show(a.sort, st.eval(a))
			}
			shown += "(" + strings.Join(list, ", ") + ")"
		}
		if fact := shown + " = " + st.show(f.sort, st.eval(f)); !slices.Contains(*facts, fact) {
			*facts = append(*facts, fact)
		}
	}
	for _, a := range f.args {
		st.parts(a, facts)
	}
}

// Check returns an error for the first clause of the invariant, the promises among them, that
// the state does not have. It takes much longer than a step.
func (st *State) Check() error {
	st.env = st.env[:0]
	for _, c := range st.spec.Clauses {
		if st.eval(c.Formula) == 0 {
			return fmt.Errorf("%s: it is not so that %s\n\t%s", c.Name, c.Words, st.explain(c.Formula))
		}
	}
	return nil
}
