package explore

import (
	"fmt"
	"strings"
)

// effects describes what followed from a step.
func (t *trace) effects(mv move) []string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for i := range t.m.Attempts {
		was, is, who := &t.before.slots[i], &t.after.slots[i], t.names[i]
		if who == "" {
			continue
		}
		here := int(mv.slot) == i && mv.kind != pass
		if here && t.granted != 0 {
			add("%s has the lease with token %s, valid for another %s", who, t.token(t.granted), span(t.left(is)))
		}
		if asks := t.confirms(was, is); len(asks) > 0 {
			add("%s asks %s to CONFIRM", who, list(asks))
		}
		if was.life == asking && is.life == over && mv.kind == pass {
			add("the attempt %s has taken too long and is given up", who)
		} else if was.life == asking && is.life == over && t.granted == 0 && mv.kind != cancelAttempt {
			add("the attempt %s is lost", who)
		}
		if mv.kind == hearExtend && here {
			if left := t.left(is); is.life == holding && is.vote == 0 && left > 0 {
				add("the renewal of %s, with token %s, succeeds: it is valid for another %s", who, t.token(t.tokens[i]), span(left))
			}
		}
		if was.life == holding && t.valid(was) && !(is.life == holding && t.valid(is)) && mv.kind != release && mv.kind != rejoin {
			add("the lease %s is not valid any more", who)
		}
		if gone := t.gone(was, is); len(gone) > 0 && !(here && mv.kind == deliverRelease) && mv.kind != crash && mv.kind != lose {
			add("%s's key at %s is gone", who, list(gone))
		}
		if n := mv.node; here && mv.kind == deliverAcquire && t.nodes.answer.Verdict == 0 && t.after.owner(n) < 0 {
			add("the release behind it frees the lock again")
		}
	}
	return lines
}

// left returns for how many ticks a lease is still valid.
func (t *trace) left(s *slot) (n int) {
	if s.life != holding {
		return 0
	}
	for t.lease(s.machine).Valid(at(s.age + uint8(n))) {
		n++
	}
	return n
}

// confirms returns the nodes that were asked to confirm in this step.
func (t *trace) confirms(was, is *slot) (nodes []int) {
	for n := range t.m.Nodes {
		if count(is.cells[n].confirm) > count(was.cells[n].confirm) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func count(confirms [3]message) (n int) {
	for _, msg := range confirms {
		if msg.stage != idle {
			n++
		}
	}
	return n
}

// gone returns the nodes where a key ended.
func (t *trace) gone(was, is *slot) (nodes []int) {
	for n := range t.m.Nodes {
		if was.cells[n].key > 0 && is.cells[n].key == 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// verdict describes what the last step broke.
func (t *trace) verdict(mv move) string {
	who := t.names[mv.slot]
	switch {
	case t.broken&Whole != 0:
		return fmt.Sprintf("%s: once all messages have arrived, nobody has the lock, or a node keeps a slot that is of no lease", Whole)
	case t.broken&Served != 0:
		return fmt.Sprintf("%s: whatever arrives from now on, a waiter does not get the lock", Served)
	case t.broken&Freed != 0:
		return fmt.Sprintf("%s: the release of %s was reported as successful, and a majority of the nodes still has the lease", Freed, who)
	case t.broken&Bounded != 0:
		return fmt.Sprintf("%s: a lease is still valid %s after it was granted", Bounded, span(t.m.MaxHold))
	case t.broken&Revived != 0:
		return fmt.Sprintf("%s: %s was renewed by a renewal that began after a majority of the nodes had broken it", Revived, who)
	case t.broken&Mutex != 0 && t.m.hasKind():
		var all []string
		for i := range t.m.Attempts {
			if s := &t.after.slots[i]; s.life == holding && t.valid(s) {
				all = append(all, t.names[i])
			}
		}
		return fmt.Sprintf("%s: %s are valid at the same time", Mutex, strings.Join(all, ", "))
	case t.broken&Mutex != 0:
		var both []string
		for i := range t.m.Attempts {
			if s := &t.after.slots[i]; s.life == holding && t.valid(s) {
				both = append(both, t.names[i])
			}
		}
		return fmt.Sprintf("%s: %s and %s are valid at the same time", Mutex, both[0], both[1])
	case t.broken&Tokens != 0:
		before := t.before.top
		if t.m.hasKind() {
			before = t.barrier(&t.before, &t.after.slots[mv.slot])
		}
		return fmt.Sprintf("%s: %s was granted with token %s, which is not larger than %s, granted before", Tokens, who, t.token(t.granted), t.token(before))
	case t.broken&Renewals != 0:
		return fmt.Sprintf("%s: %s was renewed with token %s, and %s was granted meanwhile", Renewals, who, t.token(t.tokens[mv.slot]), t.token(t.before.top))
	}
	if mv.kind == deliverAcquire || mv.kind == deliverAgain || mv.kind == deliverMove || mv.kind == deliverStrayAsk || mv.kind == deliverExtend || mv.kind == deliverStray || mv.kind == deliverHeal {
		return fmt.Sprintf("%s: %s was released at node %d, and has its key there", Orphans, who, mv.node+1)
	}
	for i := range t.m.Attempts {
		if c := &t.after.slots[i].cells[mv.node]; c.freed && (c.key > 0 || c.queue.place > 0) {
			return fmt.Sprintf("%s: %s was released at node %d, and is handed the lock there", Orphans, t.names[i], mv.node+1)
		}
	}
	if mv.kind == deliverReturn {
		return fmt.Sprintf("%s: %s was released at node %d, and has its key there", Orphans, t.names[t.before.slots[mv.slot].cells[mv.node].queue.comes-1], mv.node+1)
	}
	return fmt.Sprintf("%s: %s may have the lock at a node, and does not release it", Orphans, who)
}
