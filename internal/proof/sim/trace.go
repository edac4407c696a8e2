package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
// the answers, as its leases show it. Each lock is checked by itself, and of a semaphore
// each slot, which is a lock of its own.
type trace struct {
	w     *world
	locks []*lockTrace // in the order of the locks
}

// lockTrace is the trace of one lock, or of one slot.
type lockTrace struct {
	t        *trace
	lock     int
	slot     int  // of a semaphore; -1 of other locks
	several  bool // several can hold the lock
	state    *induct.State
	owners   map[int]*owned   // by the numbers of owners
	attempts map[int]*attempt // by their numbers; see number
	leaving  []int            // owners whose release has just left
	nodes    []nodeTrace
}

// owned is what an owner has of a lock. In a semaphore it has an attempt for each set of slots that
// a node gave it: a client counts only nodes that gave it the same slots. If an operator ends its
// lease before its client knows of the lease, later grants of nodes belong to another attempt.
type owned struct {
	ttl     time.Duration
	reads   bool     // it is a reader's
	ended   bool     // it was given up, or released
	cut     bool     // an operator has ended a lease of it, of which its client may not have known
	must    string   // the set of slots that it asks for alone
	tenures []tenure // of its attempts
}

// tenure tells the attempts of an owner apart.
type tenure struct {
	slots string // of a semaphore
	cuts  int    // how often an operator had ended the owner's lease at the node before
}

// attempt is one owner value, as its client uses it.
type attempt struct {
	*owned
	tenure
	ended bool          // given up, or released
	broke bool          // an operator has broken its lease
	lease bool          // it has had its lease
	loose bool          // its lease rests on what an operator has ended in part, or on a copy of it
	until time.Duration // the end of the validity
}

// nodeTrace is what is known of a lock at a node.
type nodeTrace struct {
	// holders are the attempts whose leases were there after the last command. Nobody may count one
	// that is residue: its time was over before a crash, or clients do not know yet that the server may
	// have lost data.
	holders  map[int]bool          // residue, by attempt
	replaced bool                  // no connection broke at the last crash, so clients find out later
	foreign  bool                  // it got the data of another node then
	copied   map[int]time.Duration // of the residue that it got so: when the request left by which it was extended
	opens    time.Duration         // the end of the quarantine
	trusted  time.Duration         // clients count no answer of it before then
	places   map[int]time.Duration // when the request left that an owner's place is from
	cuts     map[int]int           // how often an operator has ended an owner's lease here
	// By attempt: when the request left by which its lease was extended, when the last promise ends,
	// and what the node stands at.
	extended, promised map[int]time.Duration
	grants             map[int][]answer
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
	t := &trace{w: w}
	if w.script.Roll || w.switches.PromisesOnly { // the world of a trace has one list of nodes
		return t
	}
	for i := range w.script.Locks {
		kind := w.script.kind(i)
		if kind.IsMutex() || kind.Shared {
			t.locks = append(t.locks, t.newLock(i, -1))
			continue
		}
		for slot := range int(kind.Limit) {
			t.locks = append(t.locks, t.newLock(i, slot))
		}
	}
	return t
}

func (t *trace) newLock(i, slot int) *lockTrace {
	l := &lockTrace{t: t, lock: i, slot: slot, several: !t.w.script.kind(i).IsMutex(), owners: map[int]*owned{}, attempts: map[int]*attempt{}}
	for range t.w.nodes {
		l.nodes = append(l.nodes, nodeTrace{holders: map[int]bool{}, places: map[int]time.Duration{}, cuts: map[int]int{}, grants: map[int][]answer{}, copied: map[int]time.Duration{}, extended: map[int]time.Duration{}, promised: map[int]time.Duration{}})
	}
	l.state = steps().Start(induct.World{
		Nodes:   len(t.w.nodes),
		TTL:     func(a int) time.Duration { return l.attempts[a].validity() },
		Reads:   func(a int) bool { return l.attempts[a].reads },
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
func (a *owned) validity() time.Duration { return a.ttl - validity.Drift(a.ttl) }

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
	l.t.w.findings.wrong(Step, "%s (the first attempt of o1 is %d, node 0 is n1): %s", l, perOwner, text)
}

func (l *lockTrace) String() string {
	if l.slot < 0 {
		return fmt.Sprintf("lock %d", l.lock+1)
	}
	return fmt.Sprintf("slot %d of lock %d", l.slot, l.lock+1)
}

// of are the traces of a lock: one, or one for each slot of a semaphore.
func (t *trace) of(lock int) []*lockTrace {
	begin := slices.IndexFunc(t.locks, func(l *lockTrace) bool { return l.lock == lock })
	if begin < 0 {
		return nil
	}
	end := begin + 1
	for end < len(t.locks) && t.locks[end].lock == lock {
		end++
	}
	return t.locks[begin:end]
}

// sends: a client's request leaves.
func (t *trace) sends(o op, words []string) {
	if len(o.owners) == 0 {
		return
	}
	for _, l := range t.of(o.lock) {
		l.sends(o, words)
	}
}

func (l *lockTrace) sends(o op, words []string) {
	asks, ttl := o.owners[0], o.ttl
	if !o.ends() && (o.releases() || o.breaks) {
		l.leaving = append(l.leaving, asks)
		asks = o.owners[len(o.owners)-1]
	}
	if o.name == "return" {
		ttl = ttlOfReturn(words)
	}
	kind := l.t.w.script.kind(l.lock)
	if o.acquires() && l.owners[asks] == nil {
		l.owners[asks] = &owned{ttl: ttl, reads: kind.Shared && o.weight < kind.Limit}
		if l.slot < 0 {
			l.number(asks, tenure{}) // it begins
		}
	}
	if by := l.owners[asks]; o.must != "" && l.slot >= 0 && by != nil {
		by.must = o.must
		l.wantsNoOther(asks, by.must)
	}
}

// wantsNoOther gives up an owner's attempts for other slots.
func (l *lockTrace) wantsNoOther(owner int, slots string) {
	for _, n := range l.attemptsOf(owner) {
		if l.attempts[n].slots != slots {
			l.givesUp(n)
		}
	}
}

// perOwner is how many attempts of one owner have a number.
const perOwner = 100

// number is the number of an owner's attempt, which begins if it is new. It is 0 for an owner that
// has not asked.
func (l *lockTrace) number(owner int, of tenure) int {
	by := l.owners[owner]
	if by == nil {
		return 0
	}
	if l.slot < 0 {
		of.slots = ""
	}
	i := slices.Index(by.tenures, of)
	if i < 0 {
		i, by.tenures = len(by.tenures), append(by.tenures, of)
	}
	n := owner*perOwner + i
	if l.attempts[n] == nil {
		l.attempts[n] = &attempt{owned: by, tenure: of}
		l.apply("begin", int64(n))
		if by.ended || by.must != "" && by.must != of.slots {
			l.givesUp(n)
		}
	}
	return n
}

// numberAt is the number of the attempt that a node has of an owner with these slots.
func (l *lockTrace) numberAt(n *node, owner int, slots string) int {
	return l.number(owner, tenure{slots, l.nodes[n.index].cuts[owner]})
}

func ownerOfAttempt(n int) int { return n / perOwner }

// attemptsOf are the attempts of an owner.
func (l *lockTrace) attemptsOf(owner int) (all []int) {
	if by := l.owners[owner]; by != nil {
		for i := range by.tenures {
			all = append(all, owner*perOwner+i)
		}
	}
	return all
}

// hasSlot reports whether a list of slots, as in a grant, has one.
func hasSlot(list string, slot int) bool {
	return slices.Contains(strings.Split(list, ","), strconv.Itoa(slot))
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
		for _, owner := range l.leaving {
			l.departs(owner)
		}
		l.leaving = l.leaving[:0]
	}
}

// departs: the release of an owner by its client has left.
func (l *lockTrace) departs(owner int) {
	if by := l.owners[owner]; by != nil {
		by.ended = true
	}
	for _, n := range l.attemptsOf(owner) {
		l.givesUp(n)
	}
}

// cuts: a node is about to end an attempt for an operator. An attempt
// without a lease is over then: its client may go on to ask, with another attempt.
func (l *lockTrace) cuts(n int) {
	a := l.attempts[n]
	switch a.cut = true; {
	case !a.lease:
		l.givesUp(n)
	case !a.ended && !a.broke:
		a.broke = true
		l.apply("break", int64(n))
	}
}

func (l *lockTrace) givesUp(n int) {
	if a := l.attempts[n]; !a.ended {
		a.ended = true
		l.apply("giveUp", int64(n))
	}
}

// applied: a node has executed a command that left then.
func (t *trace) applied(n *node, o op, said []byte, left time.Duration) {
	if len(o.owners) == 0 {
		return // leases that have ended meanwhile are found with the next command
	}
	var all []held
	for i, l := range t.locks {
		if l.several && l.lock != o.lock {
			continue
		}
		if i == 0 || t.locks[i-1].lock != l.lock {
			all = l.leasesAt(n)
		}
		l.applied(n, o, said, left, l.among(all))
	}
}

// leasesAt are the leases of the lock at a node, in the order in which it granted them.
func (l *lockTrace) leasesAt(n *node) []held {
	all := heldAt(n, l.lock)
	slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.number, b.number) })
	return all
}

// among are the leases that have the slot.
func (l *lockTrace) among(all []held) []held {
	if l.slot < 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(h held) bool { return !hasSlot(h.slots, l.slot) })
}

func (l *lockTrace) applied(n *node, o op, said []byte, left time.Duration, leases []held) {
	at, node := &l.nodes[n.index], int64(n.index)
	for _, was := range slices.Sorted(maps.Keys(at.holders)) {
		isResidue := at.holders[was]
		if slices.ContainsFunc(leases, func(h held) bool { return l.numberAt(n, h.owner, h.slots) == was }) {
			continue
		}
		delete(at.holders, was)
		// An owner that wants other slots has given up these.
		ends := o.releases() || o.breaks || l.slot >= 0 && l.attempts[was].ended
		named := slices.Contains(o.owners, ownerOfAttempt(was))
		if named && o.ends() {
			l.cuts(was)
		}
		switch {
		case isResidue:
		case ends && named:
			l.apply("release", node, int64(was))
		default:
			l.apply("forget", node, int64(was))
		}
	}
	if o.lock == l.lock && o.ends() && said[0] != '-' {
		for _, owner := range o.owners {
			if !slices.ContainsFunc(leases, func(h held) bool { return h.owner == owner }) {
				at.cuts[owner]++
				if by := l.owners[owner]; by != nil {
					by.cut = true
				}
			}
		}
	}
	if o.lock == l.lock && o.acquires() && said[0] != '-' {
		l.place(n, o, left)
	}
	if o.lock == l.lock && o.name == "confirm" && yes(said) && (l.slot < 0 || hasSlot(o.must, l.slot)) {
		by := l.numberAt(n, o.owners[0], o.must)
		if _, has := at.holders[by]; !has {
			l.confirms(n, by)
		}
	}
	for _, h := range leases {
		l.has(n, o, said, left, h)
	}
}

// has: after a command, a node has a lease.
func (l *lockTrace) has(n *node, o op, said []byte, left time.Duration, h held) {
	at, node, holder := &l.nodes[n.index], int64(n.index), l.numberAt(n, h.owner, h.slots)
	isResidue, had := at.holders[holder]
	at.holders[holder] = isResidue
	a := l.attempts[holder]
	if a == nil {
		return
	}
	gets, mine, whole := !had, slices.Contains(o.owners, h.owner), h.left >= a.ttl-2*time.Millisecond
	if gets && at.replaced && l.t.w.now() < at.opens {
		isResidue, at.holders[holder] = true, true
	}
	heals := o.name == "heal" || o.heals
	switch {
	case isResidue && mine && whole && o.name == "extend" && at.foreign:
		at.copied[holder] = left
	case isResidue:
	case gets && mine && heals:
		if !whole { // the lock is kept after its release for less than a TTL: as if asked for that before
			left -= a.ttl - h.left
		}
		if a.reads {
			l.grants(n, h, left)
			break
		} else if a.cut && !a.lease { // see wins
			at.holders[holder] = true
			break
		}
		if l.t.w.now() >= at.trusted {
			l.promises(n, holder, left)
		}
		l.apply("heal", node, int64(holder), int64(left))
	case mine && whole && (o.name == "extend" || heals):
		if l.promises(n, holder, left) {
			at.extended[holder] = max(at.extended[holder], left)
		}
		l.apply("extend", node, int64(holder), int64(left))
	case gets && mine && o.acquires() && h.owner == o.owners[len(o.owners)-1] && whole:
		l.grants(n, h, left)
	case gets: // handed on
		l.grants(n, h, at.places[h.owner])
	case !mine || said[0] == '-':
	case o.acquires() && whole:
		l.grants(n, h, left)
	case o.name == "confirm" && yes(said):
		l.confirms(n, holder)
	}
}

// place notes the place of an owner that has asked for the lock.
func (l *lockTrace) place(n *node, o op, left time.Duration) {
	owner := o.owners[len(o.owners)-1]
	text, _, ok := n.server.Value("{" + lockName(l.lock) + "}:place:" + o.ids[len(o.ids)-1])
	a := l.owners[owner]
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

// tokenOf is the token of a lease that a node has granted. For a mutex it is the token at which the node stands.
func (l *lockTrace) tokenOf(n *node, h held) uint64 {
	if l.several {
		return h.token
	}
	return l.counter(n)
}

func (l *lockTrace) grants(n *node, h held, left time.Duration) {
	at, owner := &l.nodes[n.index], l.numberAt(n, h.owner, h.slots)
	token := l.tokenOf(n, h)
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
		l.crashed(n)
	}
}

func (l *lockTrace) crashed(n *node) {
	at, node := &l.nodes[n.index], int64(n.index)
	at.opens = l.t.w.now() + l.t.w.script.quarantine()*99/100 // by the fastest clock
	at.replaced, at.foreign = false, false
	clear(at.holders)
	clear(at.copied)
	l.apply("crash", node, int64(at.opens), int64(l.counter(n)))
	for _, h := range l.among(l.leasesAt(n)) {
		number := l.numberAt(n, h.owner, h.slots)
		a := l.attempts[number]
		switch {
		case a == nil:
		case !a.ended && !a.broke && at.promised[number] <= l.t.w.now():
			at.holders[number] = true
		default:
			at.holders[number] = false
			l.apply("recall", node, int64(number), int64(l.tokenOf(n, h)))
		}
	}
}

// replaced: no connection broke when a node lost data, so clients find out later. What the node
// grants until then, none of them may count. If it got the data of another node, foreign, then clients count
// on leases of that node that they renew. That is not promised to be safe; see docs/limits.md.
func (t *trace) replaced(n *node, foreign bool) {
	for _, l := range t.locks {
		l.nodes[n.index].replaced, l.nodes[n.index].foreign = true, foreign
	}
}

// jumped: a node's clock was set ahead.
func (t *trace) jumped(n *node) {
	for _, l := range t.locks {
		at := &l.nodes[n.index]
		at.trusted = t.w.now() + t.w.script.longest()
		l.apply("jump", int64(n.index), int64(at.trusted))
	}
}

// deadline is when the validity of a lease ends, by the true time.
func (t *trace) deadline(c *claim) time.Duration {
	return t.w.now() + time.Until(c.lease.Deadline())
}

// granted: a worker has a lease.
func (t *trace) granted(c *claim) {
	all, until := t.of(c.lock), t.deadline(c)
	if len(all) == 0 || until <= t.w.now() {
		return // the lease is over, and the holder can see that
	}
	token := uint64(c.lease.Token())
	if all[0].slot < 0 {
		all[0].wins(c.owner, "", token, until)
		return
	}
	slots := t.slotsOf(c, all, token, until)
	for _, l := range all {
		if by := l.owners[c.owner]; by != nil {
			by.must = slots
		}
		l.wantsNoOther(c.owner, slots)
		if hasSlot(slots, l.slot) {
			l.wins(c.owner, slots, token, until)
		}
	}
	if want := int(c.weight); len(t.w.nodes) > 1 && strings.Count(slots, ",")+1 != want {
		t.w.findings.wrong(Step, "o%d has %d permits of lock %d, and a majority of the nodes gave it the slots %s", c.owner, want, c.lock+1, slots)
	}
}

// slotsOf are the slots that a lease rests on: those that a majority gave its owner. If no
// majority gave it the same, it is only the smallest, and the refusal says what is missing.
func (t *trace) slotsOf(c *claim, all []*lockTrace, token uint64, until time.Duration) string {
	if i := c.lease.Slot(); i < len(all) && all[i].owners[c.owner] != nil {
		l := all[i]
		for _, n := range l.attemptsOf(c.owner) {
			slots := l.attempts[n].slots
			if isMajority(l.together(c.owner, slots, func(n int) uint64 { return l.stands(n, token, until) }), len(l.nodes)) {
				return slots
			}
		}
	}
	return strconv.Itoa(c.lease.Slot())
}

// together is the set of nodes that are in the set of any of an owner's attempts for these slots.
func (l *lockTrace) together(owner int, slots string, of func(n int) uint64) (set uint64) {
	for _, n := range l.attemptsOf(owner) {
		if l.attempts[n].slots == slots {
			set |= of(n)
		}
	}
	return set
}

// wins: an owner has its lease, by the attempt that a majority granted. If an operator has ended a lease
// of the owner, this one may rest on answers from before that, in part. It is no lease to the proof
// then: its client will find out.
func (l *lockTrace) wins(owner int, slots string, token uint64, until time.Duration) {
	by := l.owners[owner]
	if by == nil {
		return
	}
	stands := func(n int) uint64 { return l.stands(n, token, until) }
	best := l.number(owner, tenure{slots: slots})
	for _, n := range l.attemptsOf(owner) {
		if l.attempts[n].slots == slots && isMajority(stands(n), len(l.nodes)) {
			best = n
		}
	}
	a, over := l.attempts[best], false
	if by.cut && !by.ended && (a.ended || !isMajority(stands(best), len(l.nodes))) {
		over = isMajority(l.together(owner, slots, stands), len(l.nodes))
	}
	if over {
		return
	}
	a.lease, a.until = true, until
	l.apply("win", int64(best), l.orAll(stands(best)), int64(token), int64(until))
}

// stands is the set of nodes that stand at a token for an attempt until then.
func (l *lockTrace) stands(n int, token uint64, until time.Duration) (set uint64) {
	for i := range l.nodes {
		for _, g := range l.nodes[i].grants[n] {
			if g.token == token && until <= g.left+l.attempts[n].validity() {
				set |= 1 << i
			}
		}
	}
	return set
}

func isMajority(set uint64, nodes int) bool { return bits.OnesCount64(set) >= moreThanHalf(nodes) }

// orAll is a majority as it is. For fewer nodes it is all, so that the refusal says what is missing.
func (l *lockTrace) orAll(set uint64) int64 {
	if !isMajority(set, len(l.nodes)) {
		return 1<<len(l.nodes) - 1
	}
	return int64(set)
}

// renewals finds the leases that were renewed since it last looked.
func (t *trace) renewals(claims []*claim) {
	for _, c := range claims {
		all := t.of(c.lock)
		if len(all) == 0 || c.over || !c.k.c.running() {
			continue
		}
		until := t.deadline(c)
		for _, l := range all {
			for _, n := range l.attemptsOf(c.owner) {
				a := l.attempts[n]
				if !a.lease || a.loose || a.until == until {
					continue
				}
				a.until = until
				extended := l.extended(n, until)
				if !isMajority(extended, len(l.nodes)) { // unless some nodes have another attempt of it, or a copy
					all := l.together(c.owner, a.slots, func(n int) uint64 { return l.extended(n, until) | l.copied(n, until) })
					a.loose = isMajority(all, len(l.nodes))
				}
				if !a.loose {
					l.apply("renew", int64(n), l.orAll(extended), int64(until))
				}
			}
		}
	}
}

// copied is the set of nodes that extended until then what they have of a lease of another node.
func (l *lockTrace) copied(n int, until time.Duration) (set uint64) {
	for i := range l.nodes {
		if left, ok := l.nodes[i].copied[n]; ok && until <= left+l.attempts[n].validity() {
			set |= 1 << i
		}
	}
	return set
}

// extended is the set of nodes that extended a lease until then.
func (l *lockTrace) extended(n int, until time.Duration) (set uint64) {
	for i := range l.nodes {
		if until <= l.nodes[i].extended[n]+l.attempts[n].validity() {
			set |= 1 << i
		}
	}
	return set
}
