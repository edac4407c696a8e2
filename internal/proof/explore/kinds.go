package explore

import (
	"strconv"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// In a world with a Kind several can hold the lock. Attempts on a read-write lock are
// those of readers and of writers, in any order. Attempts on a semaphore want one permit
// each. Nodes are modelnode.Shared.

// share is what a cell has in such a world besides.
type share struct {
	slot   uint8   // of the lease at the node, from 1; with key > 0
	said   uint8   // of the grant in the answer to the acquire
	move   message // the acquire for the slot agreed on
	always bool    // the release leaves a tombstone whatever it finds
}

// maxPermits is the largest semaphore.
const maxPermits = 3

// hasKind reports whether several can hold the lock.
func (m *Model) hasKind() bool { return m.Kind != rule.Spec{} }

// hasSlots reports whether the lock is a semaphore.
func (m *Model) hasSlots() bool { return m.Kind.HasSlots() }

// ownerNames are the owners of attempts, as nodes see them.
var ownerNames = func() (names [maxSlots]string) {
	for i := range names {
		names[i] = string(rune('a' + i))
	}
	return names
}()

// slotText is a slot as machines and nodes see it.
func slotText(slot uint8) string {
	if slot == 0 {
		return ""
	}
	return strconv.Itoa(int(slot) - 1)
}

// slotOf is the slot of such a text.
func slotOf(text string) uint8 {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n >= maxPermits {
		panic("explore: slots " + text)
	}
	return uint8(n) + 1
}

// writes reports whether the attempt wants the whole lock.
func (s *slot) writes(m *Model) bool { return m.Kind.Shared && !s.reads }

// sharedNode is what a node keeps about the lock and each attempt.
type sharedNode struct {
	counter token
	shut    uint8
	keys    [maxSlots]sharedKey
}

// sharedKey is what a node keeps for an attempt.
type sharedKey struct{ key, tomb, slot uint8 }

// sharedAsk is a request to such a node. It and what the node keeps determine the rest.
type sharedAsk struct {
	node    sharedNode
	kind    moveKind
	slot    uint8 // of the attempt
	readers [maxSlots]bool
	agreed  uint8
	token   token // to be confirmed
	always  bool
}

// sharedAnswer is what follows.
type sharedAnswer struct {
	node   sharedNode
	answer modelnode.Answer[uint8]
	slot   uint8 // of the grant
}

// shared is what node n keeps.
func (w *walker) shared(st *state, n uint8) (nd sharedNode) {
	nd.counter, nd.shut = st.nodes[n].counter, st.nodes[n].shut
	for i := range w.m.Attempts {
		c := &st.slots[i].cells[n]
		nd.keys[i] = sharedKey{c.key, c.tomb, c.share.slot}
	}
	return nd
}

// keepShared puts back what node n keeps after an operation.
func (w *walker) keepShared(st *state, n uint8, nd *sharedNode) {
	st.nodes[n].counter, st.nodes[n].shut = nd.counter, nd.shut
	for i := range w.m.Attempts {
		c := &st.slots[i].cells[n]
		c.key, c.tomb, c.share.slot = nd.keys[i].key, nd.keys[i].tomb, nd.keys[i].slot
	}
}

// model is such a node, as the model of a node sees it.
func (w *walker) model(nd *sharedNode, readers [maxSlots]bool) modelnode.Shared {
	l := modelnode.Shared{Record: rule.Record{Spec: w.m.Kind, Token: fence.Token(nd.counter)}}
	if nd.shut > 0 {
		l.ShutUntil = epoch.Add(ticks(int(nd.shut)))
	}
	for i, k := range nd.keys {
		if k.key > 0 {
			l.Holds = append(l.Holds, rule.Hold{
				Owner: ownerNames[i], Weight: w.m.weight(readers[i]), Count: 1, Token: l.Token,
				Slot: int64(k.slot) - 1, Expiry: epoch.Add(ticks(int(k.key))),
			})
			if w.m.hasSlots() {
				l.Holds[len(l.Holds)-1].Slots = rule.Slots(slotText(k.slot))
			}
		}
		if k.tomb > 0 {
			l.Tombs = append(l.Tombs, rule.Tomb{Owner: ownerNames[i], Expiry: epoch.Add(ticks(int(k.tomb)))})
		}
	}
	return l
}

// node is what the model of a node keeps.
func (w *walker) node(l modelnode.Shared) (nd sharedNode) {
	nd.counter = w.m.packed(uint64(l.Token))
	if l.ShutUntil > epoch {
		nd.shut = left(l.ShutUntil, epoch)
	}
	for i := range nd.keys {
		for _, h := range l.Holds {
			if h.Owner == ownerNames[i] && h.Expiry > epoch {
				nd.keys[i].key, nd.keys[i].slot = left(h.Expiry, epoch), uint8(h.Slot)+1
			}
		}
		for _, t := range l.Tombs {
			if t.Owner == ownerNames[i] && t.Expiry > epoch {
				nd.keys[i].tomb = left(t.Expiry, epoch)
			}
		}
	}
	return nd
}

// weight is how much of the lock an attempt wants: all of it, or 1.
func (m *Model) weight(reads bool) int64 {
	if m.Kind.Shared && !reads {
		return m.Kind.Limit
	}
	return 1
}

// execute makes a node execute a request.
func (w *walker) execute(q *sharedAsk) *sharedAnswer {
	if known := w.executed[*q]; known != nil {
		return known
	}
	now, r, owner := epoch, w.m.KindRules, ownerNames[q.slot]
	l := w.model(&q.node, q.readers)
	ask := rule.Ask{Spec: w.m.Kind, Owner: owner, Weight: w.m.weight(q.readers[q.slot]), TTL: ticks(w.m.TTL), Fair: true, Numbered: true}
	own := ask // with the slots of the lease
	own.Slots, own.Exact, own.Fair = rule.Slots(slotText(q.agreed)), w.m.hasSlots(), false
	var a modelnode.Answer[string]
	var slots rule.Slots
	switch q.kind {
	case deliverAcquire, deliverAgain:
		l, a, slots = l.Acquire(r, ask, now)
	case deliverMove:
		l, a, slots = l.Acquire(r, own, now)
	case deliverConfirm:
		l, a = l.Confirm(owner, own.Slots, w.m.number(q.token), now)
	case deliverExtend, deliverStray:
		l, a = l.Extend(r, own, now)
	case deliverHeal:
		l, a = l.Heal(r, own, now)
	case deliverRelease:
		l, a = l.Release(rule.End{Owner: owner}, false, now)
	case deliverBury:
		l, a = l.Release(rule.End{Owner: owner, Tomb: ticks(w.m.TTL)}, q.always, now)
	case crash:
		l = l.Crash(w.m.KeepCounter, ticks(w.m.Quarantine), now)
	}
	after := &sharedAnswer{node: w.node(l), slot: slotOf(string(slots))}
	after.answer = modelnode.Answer[uint8]{Verdict: a.Verdict, Token: a.Token, ExpiresIn: a.ExpiresIn}
	for i, name := range ownerNames {
		if a.Holder == name {
			after.answer.Holder = uint8(i) + 1
		}
	}
	if w.executed == nil {
		w.executed = map[sharedAsk]*sharedAnswer{}
	}
	w.executed[*q] = after
	return after
}

// deliverShared makes a node execute a request.
func (w *walker) deliverShared(st *state, mv move) {
	s := &st.slots[mv.slot]
	c := &s.cells[mv.node]
	q := sharedAsk{node: w.shared(st, mv.node), kind: mv.kind, slot: mv.slot, always: mv.kind == deliverBury && (c.share.always || w.heals())}
	for i := range w.m.Attempts {
		if st.slots[i].reads {
			q.readers[i] = true
		}
	}
	switch mv.kind {
	case deliverConfirm:
		q.token, q.agreed = c.confirm[mv.arg].token, s.agreed
	case deliverMove, deliverExtend, deliverStray, deliverHeal:
		q.agreed = s.agreed
	}
	after := w.execute(&q)
	stays := c.release && w.reducesShared() && (c.acquiring() || c.heals > 0)
	w.answer = after.answer
	w.keepShared(st, mv.node, &after.node)
	if c.freed && c.key > 0 && q.node.keys[mv.slot].key == 0 {
		w.broke(Orphans)
	}
	how, token := saying(w.answer), w.m.packed(w.answer.Token)
	if mv.kind == deliverMove {
		c.share.move = c.share.move.answered(how, token)
		return
	}
	if mv.kind == deliverAcquire && c.acquire.stage == asked && how == saidYes {
		c.share.said = after.slot
	}
	c.delivered(mv, how, token, s.short, w.m.Check&Orphans != 0)
	c.release = c.release || stays
}

// shareMoves appends the steps of the messages of such a world.
func (w *walker) shareMoves(i, n uint8, c *cell, out []move) []move {
	if c.share.move.sent() {
		out = append(out, move{kind: deliverMove, slot: i, node: n})
	}
	if c.share.move.stage >= saidNo {
		out = append(out, move{kind: hearMove, slot: i, node: n})
	}
	return out
}

// hearMove passes the answer to an acquire of the slot agreed on.
func (w *walker) hearMove(st *state, s *slot, n uint8) {
	c := &s.cells[n]
	e := answerEvent(quorum.Acquire, n, c.share.move, w.m.number(c.share.move.token))
	if e.Kind == quorum.Yes {
		e.Slots = slotText(s.agreed)
	}
	c.share.move = message{}
	w.stepAsking(st, s, e)
}

// conflict looks for leases that exclude each other and are valid at the same instant: a
// writer and another, two of one slot, or more than there are permits.
func (w *walker) conflict(st *state) bool {
	var holders, writers int
	var slots uint8
	for i := range w.m.Attempts {
		s := &st.slots[i]
		if s.life != holding || !w.valid(s) {
			continue
		}
		holders++
		if s.writes(w.m) {
			writers++
		}
		if w.m.hasSlots() {
			if slots&(1<<s.agreed) != 0 {
				return true
			}
			slots |= 1 << s.agreed
		}
	}
	return writers > 0 && holders > 1 || int64(holders) > w.m.Kind.Limit
}

// barrier is the largest token that a grant of s must be larger than: of all grants, or
// for a reader those of writers, or those of its slot.
func (w *walker) barrier(st *state, s *slot) token {
	switch {
	case !w.m.hasKind():
		return st.top
	case w.m.hasSlots():
		return st.tops[s.agreed-1]
	case s.reads:
		return st.tops[0]
	}
	return st.top
}

// raise notes that s was granted with token t.
func (w *walker) raise(st *state, s *slot, t token) {
	switch {
	case !w.m.hasKind():
	case w.m.hasSlots():
		st.tops[s.agreed-1] = max(st.tops[s.agreed-1], t)
	case !s.reads:
		st.tops[0] = max(st.tops[0], t)
	}
	st.top = max(st.top, t)
}

func (h *share) pack() uint64 {
	var b fields
	b.put(uint64(h.slot), 2)
	b.put(uint64(h.said), 2)
	b.put(uint64(h.move.stage), 3)
	b.put(uint64(h.move.token), 8)
	b.put(bit(h.always), 1)
	return b.word
}

func unpackShare(word uint64) share {
	b := fields{word: word}
	return share{slot: uint8(b.get(2)), said: uint8(b.get(2)), move: message{stage(b.get(3)), token(b.get(8))}, always: b.get(1) == 1}
}

// packedKind is what a slot has in such a world besides.
func (s *slot) packedKind() byte { return s.agreed<<1 | byte(bit(s.reads)) }

// writers is how many attempts so far were writers'.
func (w *walker) writers(st *state) (n int) {
	for i := range w.m.Attempts {
		if s := &st.slots[i]; s.life != unused && s.writes(w.m) {
			n++
		}
	}
	return n
}

// crossed makes the second attempt get the lock, and another slot at one node.
func (w *walker) crossed(st *state) {
	w.apply(st, move{kind: begin})
	w.apply(st, move{kind: deliverAcquire})
	w.apply(st, move{kind: begin, slot: 1})
	for n := range uint8(w.m.Nodes) {
		w.apply(st, move{kind: deliverAcquire, slot: 1, node: n})
	}
	for n := uint8(1); n < uint8(w.m.Nodes); n++ {
		w.apply(st, move{kind: hearAcquire, slot: 1, node: n})
	}
	st.slots[0] = slot{life: over, released: true} // its other messages never arrive
}
