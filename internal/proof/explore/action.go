package explore

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/proof/modelnode"
	"github.com/leasehold-dev/leasehold/internal/quorum"
)

// action describes the action of a step.
func (t *trace) action(mv move) string {
	who, node := t.names[mv.slot], mv.node+1
	s := &t.before.slots[mv.slot]
	c := &s.cells[mv.node]
	switch mv.kind {
	case begin:
		line := fmt.Sprintf("client %c begins attempt %s and sends ACQUIRE to all nodes", who[0], who)
		if t.m.Lists {
			return line + " of " + map[role]string{knowsOld: "the old list", knowsBoth: "both lists", knowsNew: "the new list"}[role(mv.arg)]
		}
		if t.m.Kind.Shared {
			return line + map[uint8]string{0: ", as a writer", 1: ", as a reader"}[mv.arg]
		}
		if mv.arg > 0 && t.m.Waits {
			return line + "; it comes before all others"
		}
		if mv.arg > 0 {
			line += ", proposing token " + t.token(token(t.m.Proposals[mv.arg-1]))
		}
		return line
	case hearMove:
		return fmt.Sprintf("%s hears from node %d about slot %s: %s", who, node, slotText(s.agreed), t.answer(mv, c))
	case deliverMove, deliverAcquire, deliverAgain, deliverConfirm, deliverExtend, deliverStray, deliverRelease, deliverBury, deliverHeal, deliverStrayAsk, deliverReturn:
		return fmt.Sprintf("node %d executes %s: %s", node, t.request(mv), t.reply(mv))
	case hearPush:
		p := c.queue.pushes[mv.arg]
		return fmt.Sprintf("%s receives a push from node %d: it was handed the lock with token %s, for its ACQUIRE of time %d", who, node, t.token(p.token), t.now-int(s.age)+int(p.stamp)-1)
	case poll:
		return fmt.Sprintf("%s may have missed a push of node %d, and asks again", who, node)
	case hearAcquire, hearConfirm, hearExtend:
		return fmt.Sprintf("%s hears from node %d: %s", who, node, t.answer(mv, c))
	case doubtAcquire, doubtConfirm, doubtExtend:
		return fmt.Sprintf("%s stops waiting for node %d's answer", who, node)
	case unsentAcquire:
		return fmt.Sprintf("%s learns that its ACQUIRE to node %d never left", who, node)
	case tickAttempt, tickVote:
		return fmt.Sprintf("a timer of %s fires", who)
	case cancelAttempt:
		if s.unclaimed {
			return fmt.Sprintf("nobody claims %s: it is given up", who)
		}
		if t.m.Waits {
			return fmt.Sprintf("client %c stops waiting: %s leaves the queue and sends RELEASE", who[0], who)
		}
		return fmt.Sprintf("client %c gives attempt %s up and sends RELEASE", who[0], who)
	case cancelVote:
		return fmt.Sprintf("%s gives its renewal up", who)
	case renew:
		line := fmt.Sprintf("client %c begins to renew %s and sends EXTEND to all nodes", who[0], who)
		if mv.arg == 1 {
			line += ", for 1 tick only"
		}
		return line
	case beginBeside, deliverBeside, hearBeside, tickBeside, cancelBeside:
		return t.besideAction(mv, who)
	case beginBreak:
		return fmt.Sprintf("the operator breaks %s and sends BREAK to all nodes", who)
	case deliverBreak:
		return fmt.Sprintf("node %d executes BREAK %s: %s", node, who, map[bool]string{true: "the lease is broken there", false: "the key is not there"}[c.key > 0])
	case release:
		if t.m.ReleaseVote {
			return fmt.Sprintf("client %c releases %s, sends RELEASE to all nodes and waits for the answers", who[0], who)
		}
		return fmt.Sprintf("client %c releases %s and sends RELEASE to all nodes", who[0], who)
	case rejoin:
		return fmt.Sprintf("client %c releases %s and rejoins the queue: it sends RELEASE to all nodes, with an ACQUIRE of attempt %s for a place behind the holder", who[0], t.names[mv.arg>>1], who)
	case claim:
		return fmt.Sprintf("client %c wants the lock, and claims %s", who[0], who)
	case pass:
		return "a tick passes"
	case crash:
		return fmt.Sprintf("node %d crashes and forgets the lock%s", node, t.crashed())
	case lose:
		return fmt.Sprintf("node %d loses the lock's key", node)
	case jump:
		return fmt.Sprintf("node %d's clock jumps ahead by %s", node, span(t.m.TTL))
	case tellBoth:
		return fmt.Sprintf("node %d learns that its list is being replaced", node)
	case tellNew:
		return fmt.Sprintf("node %d learns of the new list", node)
	case reread:
		return fmt.Sprintf("node %d asks node %d for its counter: %s", node, mv.arg+1, t.token(t.before.nodes[mv.arg].counter))
	}
	panic("explore: a step without words")
}

func (t *trace) crashed() string {
	line := ""
	if !t.m.KeepCounter {
		line += " and its counter"
	}
	if t.m.Quarantine > 0 {
		line += ", and stays out for " + span(t.m.Quarantine)
	}
	if t.m.KeepQueue {
		line += "; it still knows its queue"
	}
	return line
}

// request names the message that a node executes.
func (t *trace) request(mv move) string {
	who := t.names[mv.slot] + "'s "
	s := &t.before.slots[mv.slot]
	c := &s.cells[mv.node]
	late := ""
	if s.life == over || s.life == lost {
		late = "late "
	}
	if mv.twice {
		who = "one of two copies of " + who
	}
	switch mv.kind {
	case deliverAcquire:
		if c.acquire.stage == stray {
			late = "late "
		}
		return who + late + "ACQUIRE" + t.asked(s, c.queue.arriving(mv))
	case deliverAgain:
		return who + "ACQUIRE once more"
	case deliverStrayAsk:
		return who + "late ACQUIRE" + t.asked(s, c.queue.strays[mv.arg])
	case deliverReturn:
		return t.names[c.queue.comes-1] + "'s RELEASE, and with it " + who + late + "ACQUIRE for a place"
	case deliverMove:
		return who + late + "ACQUIRE of slot " + slotText(s.agreed)
	case deliverConfirm:
		return who + late + "CONFIRM " + t.token(t.m.older(c.confirm[mv.arg].token, s.age))
	case deliverExtend:
		return who + "EXTEND"
	case deliverStray:
		return who + "late EXTEND"
	case deliverHeal:
		return who + late + "HEAL"
	}
	return who + "RELEASE"
}

// reply describes the node's answer.
func (t *trace) reply(mv move) string {
	a := t.nodes.answer
	switch a.Verdict {
	case modelnode.Buried:
		return "refused, this owner was released"
	case modelnode.Quarantined:
		return "refused, it is in quarantine"
	case modelnode.Taken:
		if a.Holder == 0 {
			if a.Position > 0 {
				return fmt.Sprintf("placed, number %d in the queue; nobody has the lock", a.Position)
			}
			if mv.kind == deliverReturn {
				return "nobody has the lock, and it gets no place"
			}
			return "the key is not there" + t.handed()
		}
		line := fmt.Sprintf("%s has it for another %s", t.names[a.Holder-1], span(int(a.ExpiresIn/tick)))
		if a.Position > 0 {
			return fmt.Sprintf("placed, number %d in the queue, %s", a.Position, line) + t.handed()
		}
		return "refused, " + line
	}
	switch mv.kind {
	case deliverAcquire, deliverAgain, deliverStrayAsk, deliverMove:
		return t.granting(t.after.slots[mv.slot].cells[mv.node].share.slot) + ", counter " + t.token(t.m.packed(a.Token))
	case deliverConfirm:
		return "counter " + t.token(t.m.packed(a.Token))
	case deliverExtend, deliverStray:
		return "extended"
	case deliverHeal:
		return "the key is there again"
	}
	return "the key is deleted" + t.handed()
}

// answer describes an answer.
func (t *trace) answer(mv move, c *cell) string {
	msg, age := c.extend, t.before.slots[mv.slot].age
	switch mv.kind {
	case hearAcquire:
		msg = c.acquire
	case hearConfirm:
		msg = c.confirm[mv.arg]
	case hearMove:
		msg = c.share.move
	}
	switch {
	case msg.stage == saidNo && mv.kind == hearAcquire && t.m.Waits:
		if c.queue.holder == 0 {
			return "refused"
		}
		return fmt.Sprintf("in the queue, %s has it for another %s", t.names[c.queue.holder-1], span(c.queue.lasts))
	case msg.stage == saidNo:
		return "refused"
	case msg.stage == saidAbsent:
		return "refused, the key is not there"
	case mv.kind == hearAcquire || mv.kind == hearMove:
		return t.granting(c.share.said) + ", counter " + t.token(t.m.older(msg.token, age))
	case mv.kind == hearConfirm:
		return "confirmed, counter " + t.token(t.m.older(msg.token, age))
	}
	return "extended"
}

// granting describes a grant, of a slot if the lock has slots.
func (t *trace) granting(slot uint8) string {
	if slot == 0 || !t.m.hasSlots() {
		return "granted"
	}
	return "granted slot " + slotText(slot)
}

// asked describes when a repeated ACQUIRE left.
func (t *trace) asked(s *slot, a ask) (line string) {
	if !t.m.Waits || s.life != asking {
		return ""
	}
	if a.stamp > 1 {
		line = fmt.Sprintf(" of time %d", t.now-int(s.age)+int(a.stamp)-1)
	}
	if a.stand {
		line += ", for a place only"
	}
	return line
}

// handed describes which attempt was handed the lock.
func (t *trace) handed() (line string) {
	for _, to := range t.nodes.answer.Pushes {
		line += fmt.Sprintf(", and the lock is handed to %s with token %s, which is notified", t.names[to.Owner-1], t.token(t.m.packed(to.Token)))
	}
	return line
}

// besideAction describes an action of a vote besides the renewal.
func (t *trace) besideAction(mv move, who string) string {
	s := &t.before.slots[mv.slot]
	op, node := s.beside.op, mv.node+1
	if mv.kind == beginBeside {
		op = quorum.Op(mv.arg)
	}
	what := map[quorum.Op]string{quorum.Extend: "EXTEND", quorum.Release: "RELEASE"}[op]
	switch mv.kind {
	case beginBeside:
		return fmt.Sprintf("the holder of %s itself sends %s to all nodes", who, what)
	case deliverBeside:
		done := map[bool]string{true: "done", false: "refused"}[t.nodes.answer.Verdict == modelnode.Done]
		return fmt.Sprintf("node %d executes %s's %s: %s", node, who, what, done)
	case hearBeside:
		heard := map[bool]string{true: "done", false: "refused"}[s.cells[mv.node].beside == saidYes]
		return fmt.Sprintf("%s hears from node %d about its %s: %s", who, node, what, heard)
	case tickBeside:
		return fmt.Sprintf("a timer of %s's %s fires", who, what)
	}
	return fmt.Sprintf("%s does not wait for the answers to its %s any longer", who, what)
}
