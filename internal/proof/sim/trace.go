package sim

import (
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/internal/proof/induct"
	"github.com/leasehold-dev/leasehold/internal/validity"
)

// trace checks each step of a run against the protocol that package induct proves: what a
// node did, as the server's data shows it after each command, and what a client made of
// the answers, as its leases show it. Each mutex is checked by itself.
type trace struct {
	w     *world
	locks []*lockTrace // nil: not checked
}

// lockTrace is the trace of one lock.
type lockTrace struct {
	t        *trace
	lock     int
	state    *induct.State
	attempts map[int]*attempt // by the numbers of owners
	leaving  []departure      // whose release has just left
	nodes    []nodeTrace
}

// attempt is one owner value, as its client uses it.
type attempt struct {
	ttl   time.Duration
	ended bool          // given up, or released
	broke bool          // an operator has broken its lease
	lease bool          // it has had its lease
	until time.Duration // the end of the validity
}

// departure is a release that has just left: of an owner by its client, or by an operator.
type departure struct {
	owner  int
	breaks bool
}

// nodeTrace is what is known of a lock at a node.
type nodeTrace struct {
	holder int // owner whose lease was there after the last command; 0: none
	// residue is the owner of a lease that is there and that nobody may count; 0: none. Its time
	// was over before a crash, or clients do not know yet that the server may have lost data.
	residue  int
	replaced bool          // no connection broke at the last crash, so clients find out later
	opens    time.Duration // the end of the quarantine
	trusted  time.Duration // clients count no answer of it before then
	// By owner: when the requests left that its place is from and by which its lease was extended,
	// when the last promise ends, and what the node stands at.
	places, extended, promised map[int]time.Duration
	grants                     map[int][]answer
}

// answer is what a node stands at for an attempt whose request left at some time.
type answer struct {
	token uint64
	left  time.Duration
}

// lead is how far scripts let tokens lead the node's clock.
const lead = time.Second

// steps has the protocol whose steps a run may take.
var steps = sync.OnceValue(induct.RedlockFloor)

func newTrace(w *world) *trace {
	t := &trace{w: w, locks: make([]*lockTrace, w.script.Locks)}
	if w.script.Roll || w.switches.PromisesOnly { // the world of a trace has one list of nodes
		return t
	}
	for i := range t.locks {
		if w.script.kind(i).IsMutex() {
			t.locks[i] = t.newLock(i)
		}
	}
	return t
}

func (t *trace) newLock(i int) *lockTrace {
	l := &lockTrace{t: t, lock: i, attempts: map[int]*attempt{}}
	for range t.w.nodes {
		l.nodes = append(l.nodes, nodeTrace{places: map[int]time.Duration{}, grants: map[int][]answer{}, extended: map[int]time.Duration{}, promised: map[int]time.Duration{}})
	}
	l.state = steps().Start(induct.World{
		Nodes:   len(t.w.nodes),
		TTL:     func(a int) time.Duration { return l.attempts[a].validity() },
		Longest: t.w.script.longest(),
		Instant: func(token uint64) int64 { return int64(token)*1000 - int64(midnight) },
		Error:   t.w.clockErrors(),
	})
	return l
}

// clockErrors is how far tokens may be from the time.
func (w *world) clockErrors() time.Duration {
	e := clockError + lead + backOften*backMost*time.Millisecond
	for _, f := range w.script.Faults {
		if f.Kind == Boot || f.Kind == StepAhead {
			e += time.Duration(f.Size) * time.Millisecond
		}
	}
	return e + (prologue+w.script.span()+w.enough())/100
}

// validity is how long the attempt uses a lease at most, and a node keeps one at least.
func (a *attempt) validity() time.Duration { return a.ttl - validity.Drift(a.ttl) }

// apply takes a step.
func (l *lockTrace) apply(step string, args ...int64) {
	err := l.state.Apply(induct.Event{At: int64(l.t.w.now()), Step: step, Args: induct.Args(args...)})
	if err == nil {
		return
	}
	text := err.Error()
	if r := new(induct.Refusal); errors.As(err, &r) {
		text = strings.ReplaceAll(text, "\n\t", ": ")
	}
	l.t.w.findings.wrong(Step, "lock %d (attempt 1 is o1, node 0 is n1): %s", l.lock+1, text)
}

// of is the trace of a command's lock, nil if it is not checked.
func (t *trace) of(lock int) *lockTrace {
	if lock < 0 || lock >= len(t.locks) {
		return nil
	}
	return t.locks[lock]
}

// sends: a client's request leaves.
func (t *trace) sends(o op, words []string, operator bool) {
	l := t.of(o.lock)
	if l == nil || len(o.owners) == 0 {
		return
	}
	asks, ttl := o.owners[0], o.ttl
	if o.releases() {
		l.leaving = append(l.leaving, departure{asks, operator})
		asks = o.owners[len(o.owners)-1]
	}
	if o.name == "return" {
		ttl = ttlOfReturn(words)
	}
	if o.acquires() && l.attempts[asks] == nil {
		l.attempts[asks] = &attempt{ttl: ttl}
		l.apply("begin", int64(asks))
	}
}

// ttlOfReturn is the TTL of the owner that rejoins.
func ttlOfReturn(words []string) time.Duration {
	keys, _ := strconv.Atoi(words[2])
	args := words[3+keys:]
	if len(args) > 11 {
		args = args[2:] // of a step of a list
	}
	ms, _ := strconv.Atoi(args[7])
	return time.Duration(ms) * time.Millisecond
}

// left: what clients had to say has left, and their notes are heard.
func (t *trace) left() {
	for _, l := range t.locks {
		if l == nil {
			continue
		}
		for _, d := range l.leaving {
			if a := l.attempts[d.owner]; d.breaks && a != nil && a.lease {
				l.breaks(d.owner)
			} else {
				l.givesUp(d.owner)
			}
		}
		l.leaving = l.leaving[:0]
	}
}

func (l *lockTrace) givesUp(owner int) {
	if a := l.attempts[owner]; a != nil && !a.ended {
		a.ended = true
		l.apply("giveUp", int64(owner))
	}
}

func (l *lockTrace) breaks(owner int) {
	if a := l.attempts[owner]; !a.ended && !a.broke {
		a.broke = true
		l.apply("break", int64(owner))
	}
}

// applied: a node has executed a command that left then.
func (t *trace) applied(n *node, o op, said []byte, left time.Duration) {
	if len(o.owners) == 0 {
		return // leases that have ended meanwhile are found with the next command
	}
	for _, l := range t.locks {
		if l != nil {
			l.applied(n, o, said, left)
		}
	}
}

func (l *lockTrace) applied(n *node, o op, said []byte, left time.Duration) {
	at, node := &l.nodes[n.index], int64(n.index)
	value, lasts, held := n.server.Value(lockName(l.lock))
	holder := 0
	if held {
		holder = n.w.hist.number(ownerOf(value))
	}
	mine := slices.Contains(o.owners, holder)
	was := at.holder
	at.holder = holder
	switch {
	case was == 0 || was == holder || was == at.residue:
	case o.releases() && slices.Contains(o.owners, was):
		l.apply("release", node, int64(was))
	default:
		l.apply("forget", node, int64(was))
	}
	if holder != at.residue {
		at.residue = 0
	}
	if o.lock == l.lock && o.acquires() && len(o.owners) > 0 && said[0] != '-' {
		l.place(n, o, left)
	}
	if o.lock == l.lock && o.name == "confirm" && !mine && yes(said) {
		l.confirms(n, o.owners[0])
	}
	a := l.attempts[holder]
	if a == nil {
		return
	}
	gets, whole := was != holder, lasts >= a.ttl-2*time.Millisecond
	if gets && at.replaced && l.t.w.now() < at.opens && at.residue == 0 {
		at.residue = holder
	}
	extends := mine && whole && (o.name == "extend" || o.name == "heal")
	switch {
	case at.residue != 0 && !extends:
	case gets && mine && o.name == "heal" && at.residue == 0:
		if !whole { // the lock is kept after its release for less than a TTL: as if asked for that before
			left -= a.ttl - lasts
		}
		if l.t.w.now() >= at.trusted {
			l.promises(n, holder, left)
		}
		l.apply("heal", node, int64(holder), int64(left))
	case extends:
		if at.residue == 0 && l.promises(n, holder, left) {
			at.extended[holder] = max(at.extended[holder], left)
		}
		l.apply("extend", node, int64(holder), int64(left))
	case gets && mine && o.acquires() && holder == o.owners[len(o.owners)-1] && whole:
		l.grants(n, holder, left)
	case gets: // handed on
		l.grants(n, holder, at.places[holder])
	case !mine || said[0] == '-':
	case o.acquires() && whole:
		l.grants(n, holder, left)
	case o.name == "confirm" && yes(said):
		l.confirms(n, holder)
	}
}

// place notes the place of an owner that has asked for the lock.
func (l *lockTrace) place(n *node, o op, left time.Duration) {
	owner := o.owners[len(o.owners)-1]
	text, _, ok := n.server.Value("{" + lockName(l.lock) + "}:place:" + o.ids[len(o.ids)-1])
	a := l.attempts[owner]
	if !ok || a == nil || len(text) < 14 {
		return
	}
	ends, _ := strconv.ParseInt(text[1:14], 10, 64)
	if time.Duration(ends)*time.Millisecond >= time.Duration(n.clock())+a.ttl-2*time.Millisecond {
		l.nodes[n.index].places[owner] = max(left, l.nodes[n.index].places[owner])
	}
}

// counter is the token that a node stands at.
func (l *lockTrace) counter(n *node) uint64 {
	text, _, _ := n.server.Value("{" + lockName(l.lock) + "}:token")
	token, _ := strconv.ParseUint(text, 10, 64)
	return token
}

func (l *lockTrace) grants(n *node, owner int, left time.Duration) {
	at := &l.nodes[n.index]
	token := l.counter(n)
	a, counts := l.attempts[owner], l.t.w.now() >= at.trusted
	if counts {
		at.promised[owner] = max(at.promised[owner], left+a.validity())
	}
	if counts && !a.lease && !a.ended {
		at.grants[owner] = append(at.grants[owner], answer{token, left})
	}
	l.apply("grant", int64(n.index), int64(owner), int64(token), int64(left))
}

// promises reports whether clients count what the node answers an attempt that has the lock
// there, and notes its promise.
func (l *lockTrace) promises(n *node, owner int, left time.Duration) bool {
	at, now := &l.nodes[n.index], l.t.w.now()
	if now < at.trusted && at.promised[owner] <= now {
		return false
	}
	at.promised[owner] = max(at.promised[owner], left+l.attempts[owner].validity())
	return true
}

// confirms: the node stands at a token for all requests that it answered.
func (l *lockTrace) confirms(n *node, owner int) {
	at := &l.nodes[n.index]
	token := l.counter(n)
	for _, g := range slices.Clone(at.grants[owner]) {
		if confirmed := (answer{token, g.left}); !slices.Contains(at.grants[owner], confirmed) {
			at.grants[owner] = append(at.grants[owner], confirmed)
			l.apply("confirm", int64(n.index), int64(owner), int64(token), int64(g.left))
		}
	}
}

// crashed: a node may have less than before, and begins a quarantine.
func (t *trace) crashed(n *node) {
	for _, l := range t.locks {
		if l != nil {
			l.crashed(n)
		}
	}
}

func (l *lockTrace) crashed(n *node) {
	at, node := &l.nodes[n.index], int64(n.index)
	at.opens = l.t.w.now() + l.t.w.script.quarantine()*99/100 // by the fastest clock
	at.holder, at.residue, at.replaced = 0, 0, false
	l.apply("crash", node, int64(at.opens), int64(l.counter(n)))
	value, _, held := n.server.Value(lockName(l.lock))
	if !held {
		return
	}
	holder := n.w.hist.number(ownerOf(value))
	a := l.attempts[holder]
	switch {
	case a == nil:
	case !a.ended && !a.broke && at.promised[holder] <= l.t.w.now():
		at.residue = holder
	default:
		at.holder = holder
		l.apply("recall", node, int64(holder), int64(l.counter(n)))
	}
}

// replaced: no connection broke when a node lost data, so clients find out later. What the node
// grants until then, none of them may count.
func (t *trace) replaced(n *node) {
	for _, l := range t.locks {
		if l != nil {
			l.nodes[n.index].replaced = true
		}
	}
}

// jumped: a node's clock was set ahead.
func (t *trace) jumped(n *node) {
	for _, l := range t.locks {
		if l != nil {
			at := &l.nodes[n.index]
			at.trusted = t.w.now() + t.w.script.longest()
			l.apply("jump", int64(n.index), int64(at.trusted))
		}
	}
}

// deadline is when the validity of a lease ends, by the true time.
func (t *trace) deadline(c *claim) time.Duration {
	return t.w.now() + time.Until(c.lease.Deadline())
}

// granted: a worker has a lease.
func (t *trace) granted(c *claim) {
	l := t.of(c.lock)
	if l == nil {
		return
	}
	a := l.attempts[c.owner]
	until := t.deadline(c)
	if a == nil || until <= t.w.now() {
		return // the lease is over, and the holder can see that
	}
	token := uint64(c.lease.Token())
	a.lease, a.until = true, until
	l.apply("win", int64(c.owner), l.standing(c.owner, token, until), int64(token), int64(until))
}

// standing is the set of nodes that stand at a token for an attempt until then. If they are
// no majority it is all nodes, so that the refusal says what is missing.
func (l *lockTrace) standing(owner int, token uint64, until time.Duration) int64 {
	set := uint64(0)
	for i := range l.nodes {
		for _, g := range l.nodes[i].grants[owner] {
			if g.token == token && until <= g.left+l.attempts[owner].validity() {
				set |= 1 << i
			}
		}
	}
	if bits.OnesCount64(set) < moreThanHalf(len(l.nodes)) {
		return 1<<len(l.nodes) - 1
	}
	return int64(set)
}

// renewals finds the leases that were renewed since it last looked.
func (t *trace) renewals(claims []*claim) {
	for _, c := range claims {
		l := t.of(c.lock)
		if l == nil || c.over || !c.k.c.running() {
			continue
		}
		a := l.attempts[c.owner]
		if a == nil || !a.lease {
			continue
		}
		if until := t.deadline(c); until != a.until {
			a.until = until
			l.apply("renew", int64(c.owner), l.extending(c.owner, until), int64(until))
		}
	}
}

// extending is the set of nodes that extended a lease until then; see standing.
func (l *lockTrace) extending(owner int, until time.Duration) int64 {
	set := uint64(0)
	for i := range l.nodes {
		if until <= l.nodes[i].extended[owner]+l.attempts[owner].validity() {
			set |= 1 << i
		}
	}
	if bits.OnesCount64(set) < moreThanHalf(len(l.nodes)) {
		return 1<<len(l.nodes) - 1
	}
	return int64(set)
}
