package resize

import (
	"fmt"

	"github.com/leasehold-dev/leasehold/internal/rule"
)

// deliver tries the messages of an attempt that node n can execute.
func (m *Model) deliver(st *state, i, n int, try tryFunc) {
	run := func(what string, f func(st *state, s *semaphore, c *cell)) {
		try(func() string { return fmt.Sprintf("node %d executes %s of %s", st.nodes[n].name, what, owners[i]) }, func(st *state) {
			nd := &st.nodes[n]
			s := nd.semaphore()
			f(st, &s, &nd.cells[i])
			nd.keep(&s)
		})
	}
	c := &st.nodes[n].cells[i]
	if c.acquire == asked {
		run("ACQUIRE", func(st *state, s *semaphore, c *cell) {
			ans := s.admit(rule.Ask{Owner: owners[i], TTL: ticks(m.TTL), Slots: m.wish(i)}, m.Asks[i], m.Off)
			if c.acquire = idle; st.leases[i].life != asking {
				return
			}
			if c.acquire = saidNo; ans.Verdict == rule.Granted {
				c.acquire, c.granted = saidYes, uint8(ans.Slot)+1
			}
		})
	}
	if c.extend == asked {
		run("EXTEND", func(st *state, s *semaphore, c *cell) {
			own, numbers, ok := s.renew(owners[i], slotsOf(st.leases[i].slot), ticks(m.TTL), m.Off)
			if c.extend, c.own, c.numbers = saidNo, own, numbers; ok {
				c.extend = saidYes
			}
		})
	}
	if c.heal > 0 {
		run(fmt.Sprintf("HEAL with %d permits", c.heal), func(st *state, s *semaphore, c *cell) {
			s.admit(rule.Ask{Owner: owners[i], TTL: ticks(m.TTL), Exact: true, Slots: slotsOf(st.leases[i].slot)}, c.heal, m.Off)
			c.heal = 0
		})
	}
}

// names are those of the nodes in set.
func (st *state) names(set uint8) (text string) {
	for n := range st.nodes {
		if nd := &st.nodes[n]; in(set, n) {
			if text != "" {
				text += " and "
			}
			text += fmt.Sprintf("node %d", nd.name)
		}
	}
	return text
}
