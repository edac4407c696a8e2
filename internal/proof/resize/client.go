package resize

import (
	"fmt"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// tryFunc is called with a step: what happens, and how it changes the world.
type tryFunc func(what func() string, change func(*state))

// pairs are the majorities of two nodes. A third adds nothing: what it does may be lost.
var pairs = []uint8{0b011, 0b101, 0b110}

// in reports whether node n is in set.
func in(set uint8, n int) bool { return set&(1<<n) != 0 }

// clients tries the steps of an attempt and its lease.
func (w *world) clients(st *state, i int, try tryFunc) {
	l, who := &st.leases[i], owners[i]
	switch {
	case l.life == unused && w.Asks[i] > 0:
		for _, set := range pairs {
			try(func() string { return fmt.Sprintf("%s asks %s for one of %d permits", who, st.names(set), w.Asks[i]) }, func(st *state) {
				st.leases[i] = lease{life: asking, allowed: st.legitimate}
				for n := range st.nodes {
					if nd := &st.nodes[n]; in(set, n) {
						nd.cells[i].acquire = asked
					}
				}
			})
		}
	case l.life == asking:
		for _, set := range pairs {
			w.decide(st, i, set, try)
		}
	case l.life == holding && l.renewing:
		for _, set := range pairs {
			w.decideRenewal(st, i, set, try)
		}
		try(func() string { return who + " gives its renewal up" }, func(st *state) { w.endRenewal(st, i) })
	case l.life == holding && l.renewals < w.Renewals:
		for _, set := range pairs {
			try(func() string { return fmt.Sprintf("%s begins to renew on %s", who, st.names(set)) }, func(st *state) {
				l := &st.leases[i]
				l.renewing, l.renewed = true, 0
				l.renewals++
				for n := range st.nodes {
					if nd := &st.nodes[n]; in(set, n) {
						nd.cells[i].extend = asked
					}
				}
			})
		}
	}
}

// wish returns the slots that the attempt prefers, as one that knows what others have. So
// attempts are granted the same slots by all nodes, as if they had agreed on them.
func (m *Model) wish(i int) rule.Slots {
	if i >= int(m.Asks[i]) {
		return ""
	}
	return slotsOf(uint8(i) + 1)
}

// decide wins the attempt with these nodes.
func (m *Model) decide(st *state, i int, set uint8, try tryFunc) {
	slot := uint8(0)
	for n := range st.nodes {
		if c := &st.nodes[n].cells[i]; in(set, n) {
			if c.acquire != saidYes || slot != 0 && slot != c.granted {
				return
			}
			slot = c.granted
		}
	}
	try(func() string { return fmt.Sprintf("%s has slot %d on %s", owners[i], slot-1, st.names(set)) }, func(st *state) {
		l := &st.leases[i]
		*l = lease{life: holding, left: m.TTL - l.age, slot: slot, allowed: l.allowed}
		endAttempt(st, i)
	})
}

// decideRenewal wins the renewal with these nodes, and heals the others.
func (w *world) decideRenewal(st *state, i int, set uint8, try tryFunc) {
	common, has := anyNumber, uint8(0)
	for n := range st.nodes {
		if c := &st.nodes[n].cells[i]; in(set, n) {
			if c.extend != saidYes {
				return
			}
			common &= c.numbers
			has |= 1 << c.own
		}
	}
	if common == 0 && !w.Off.Common {
		if slices.Contains(w.Check, Renewed) && !st.failed() {
			try(func() string { return owners[i] + " finds no number that its nodes have in common" }, func(st *state) {
				w.endRenewal(st, i)
				w.broke(Renewed)
			})
		}
		return
	}
	heals := common
	if heals == 0 { // only where the numbers do not matter
		heals = has
	}
	for permits := range uint8(8) {
		if heals&(1<<permits) == 0 {
			continue
		}
		try(func() string { return fmt.Sprintf("%s has renewed, and its nodes have %d permits", owners[i], permits) }, func(st *state) {
			l := &st.leases[i]
			l.left = max(l.left, w.TTL-l.renewed)
			for n := range st.nodes {
				if c := &st.nodes[n].cells[i]; c.extend != saidYes && c.heal == 0 {
					c.heal = permits
				}
			}
			w.endRenewal(st, i)
		})
	}
}

// failed reports whether a resize has failed, after which nodes may have different numbers.
func (st *state) failed() bool {
	return slices.ContainsFunc(st.resizes[:], func(z resize) bool { return z.phase == mayFailed })
}

// endAttempt stops waiting for answers. Requests stay under way.
func endAttempt(st *state, i int) {
	for n := range st.nodes {
		c := &st.nodes[n].cells[i]
		if c.granted = 0; c.acquire != asked {
			c.acquire = idle
		}
	}
}

func (m *Model) endRenewal(st *state, i int) {
	st.leases[i].renewing, st.leases[i].renewed = false, 0
	for n := range st.nodes {
		c := &st.nodes[n].cells[i]
		c.extend, c.own, c.numbers = idle, 0, 0
	}
}

// end ends the lease, and the messages about it that nobody waits for. What is left of them
// does what another attempt may do.
func (m *Model) end(st *state, i int) {
	m.endRenewal(st, i)
	st.leases[i] = lease{life: over}
	for n := range st.nodes {
		c := &st.nodes[n].cells[i]
		*c = cell{key: c.key, slot: c.slot}
	}
}

// passClients lets a tick pass for the clients.
func (m *Model) passClients(st *state) {
	for i := range st.leases {
		switch l := &st.leases[i]; l.life {
		case asking:
			if l.age++; l.age >= m.TTL {
				m.end(st, i)
			}
		case holding:
			if l.left--; l.left == 0 {
				m.end(st, i)
			} else if l.renewing {
				if l.renewed++; l.renewed >= m.TTL {
					m.endRenewal(st, i)
				}
			}
		}
	}
}

// hopeless ends attempts and renewals that can win no two nodes any more.
func (m *Model) hopeless(st *state) {
	for i := range st.leases {
		l := &st.leases[i]
		asks, extends := 0, 0
		for n := range st.nodes {
			c := &st.nodes[n].cells[i]
			if c.acquire == asked || c.acquire == saidYes {
				asks++
			}
			if c.extend == asked || c.extend == saidYes {
				extends++
			}
		}
		if l.life == asking && asks < 2 {
			m.end(st, i)
		}
		if l.renewing && extends < 2 {
			m.endRenewal(st, i)
		}
	}
}
