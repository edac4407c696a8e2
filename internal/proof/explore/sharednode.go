package explore

import (
	"strconv"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/clock"
	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/internal/rule"
)

// In a world with a Kind several can hold the lock. Attempts on a read-write lock are
// those of readers and of writers, in any order. Attempts on a semaphore want one permit
// each. Nodes are modelnode.Shared.

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

// sharedNode is what a node keeps about the lock and each attempt.
type sharedNode struct {
	counter     token
	quarantined uint8
	keys        [maxSlots]sharedKey
}

// sharedKey is what a node keeps for an attempt.
type sharedKey struct {
	key, tombstone, slot uint8
	broken               bool
}

// sharedAsk is a request to such a node. It and what the node keeps determine the rest.
type sharedAsk struct {
	node      sharedNode
	op        quorum.Op
	exact     bool  // an acquire of the slot agreed on
	tombstone bool  // a release that leaves a tombstone
	crash     bool  // no request: the node forgets
	breaks    bool  // the operator breaks the lease
	slot      uint8 // of the attempt
	readers   [maxSlots]bool
	agreed    uint8
	token     token // to be confirmed
	always    bool
}

// sharedAnswer is what follows.
type sharedAnswer struct {
	node   sharedNode
	answer modelnode.Answer[uint8]
	slot   uint8 // of the grant
}

// sharedNodes executes requests, and remembers what follows: it is a function of its
// arguments. Each worker has its own.
type sharedNodes struct {
	m        *Model
	executed map[sharedAsk]*sharedAnswer
}

func newSharedNodes(m *Model) *sharedNodes {
	return &sharedNodes{m, map[sharedAsk]*sharedAnswer{}}
}

func ticksTo(end clock.Instant) uint8 { return uint8(end.Sub(epoch) / tick) }

// model is such a node, as the model of a node sees it.
func (w *sharedNodes) model(nd *sharedNode, readers [maxSlots]bool) modelnode.Shared {
	l := modelnode.Shared{Record: rule.Record{Spec: w.m.Kind, Token: fence.Token(nd.counter)}}
	if nd.quarantined > 0 {
		l.QuarantinedUntil = epoch.Add(ticks(int(nd.quarantined)))
	}
	for i, k := range nd.keys {
		if k.key > 0 {
			l.Holds = append(l.Holds, rule.Hold{
				Owner: ownerNames[i], Weight: w.m.weight(readers[i]), Count: 1, Token: l.Token,
				Slot: int64(k.slot) - 1, Expiry: epoch.Add(ticks(int(k.key))), Broken: k.broken,
			})
			if w.m.hasSlots() {
				l.Holds[len(l.Holds)-1].Slots = rule.Slots(slotText(k.slot))
			}
		}
		if k.tombstone > 0 {
			l.Tombstones = append(l.Tombstones, rule.Tombstone{Owner: ownerNames[i], Expiry: epoch.Add(ticks(int(k.tombstone)))})
		}
	}
	return l
}

// node is what the model of a node keeps.
func (w *sharedNodes) node(l modelnode.Shared) (nd sharedNode) {
	nd.counter = w.m.packed(uint64(l.Token))
	if l.QuarantinedUntil > epoch {
		nd.quarantined = ticksTo(l.QuarantinedUntil)
	}
	for i := range nd.keys {
		for _, h := range l.Holds {
			if h.Owner == ownerNames[i] && h.Expiry > epoch {
				nd.keys[i].key, nd.keys[i].slot, nd.keys[i].broken = ticksTo(h.Expiry), uint8(h.Slot)+1, h.Broken
			}
		}
		for _, t := range l.Tombstones {
			if t.Owner == ownerNames[i] && t.Expiry > epoch {
				nd.keys[i].tombstone = ticksTo(t.Expiry)
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
func (w *sharedNodes) execute(q *sharedAsk) *sharedAnswer {
	if known := w.executed[*q]; known != nil {
		return known
	}
	now, r, owner := epoch, w.m.KindRules, ownerNames[q.slot]
	l := w.model(&q.node, q.readers)
	if q.crash {
		after := &sharedAnswer{node: w.node(l.Crash(w.m.KeepCounter, ticks(w.m.Quarantine), now))}
		w.executed[*q] = after
		return after
	}
	if q.breaks {
		l, a := l.Break(r, owner, ticks(w.m.TTL+w.m.longerTombstone()), now)
		after := &sharedAnswer{node: w.node(l), answer: modelnode.Answer[uint8]{Verdict: a.Verdict}}
		w.executed[*q] = after
		return after
	}
	ask := rule.Ask{Spec: w.m.Kind, Owner: owner, Weight: w.m.weight(q.readers[q.slot]), TTL: ticks(w.m.TTL), Fair: true, Numbered: true}
	own := ask // with the slots of the lease
	own.Slots, own.Exact, own.Fair = rule.Slots(slotText(q.agreed)), w.m.hasSlots(), false
	var a modelnode.Answer[string]
	var slots rule.Slots
	switch q.op {
	case quorum.Acquire:
		if q.exact {
			ask = own
		}
		l, a, slots = l.Acquire(r, ask, now)
	case quorum.Confirm:
		l, a = l.Confirm(owner, own.Slots, w.m.number(q.token), now)
	case quorum.Extend:
		l, a = l.Extend(r, own, now)
	case quorum.Heal:
		l, a = l.Heal(r, own, now)
	case quorum.Release:
		end := rule.End{Owner: owner}
		if q.tombstone {
			end.Tombstone = ticks(w.m.TTL)
		}
		l, a = l.Release(end, q.always, now)
	}
	after := &sharedAnswer{node: w.node(l), slot: slotOf(string(slots))}
	after.answer = modelnode.Answer[uint8]{Verdict: a.Verdict, Token: a.Token, ExpiresIn: a.ExpiresIn}
	for i, name := range ownerNames {
		if a.Holder == name {
			after.answer.Holder = uint8(i) + 1
		}
	}
	w.executed[*q] = after
	return after
}
