package quorum

import "github.com/leasehold-dev/leasehold/internal/rule"

// Numbers are those of one node.
type Numbers = rule.Numbers

// numbers are the numbers of permits that nodes have, of those that have renewed a lease. A
// late request of the lease may have brought an earlier number to a node that had forgotten
// the lock, from before a resize. If such a node counted, others could be granted permits by
// that number. Nodes of a lock without such permits have none, and all count.
type numbers struct {
	of     [MaxNodes]Numbers
	any    bool  // a node has one
	common int64 // the number that the nodes which count have in common; 0: none
}

func (n *numbers) note(node int, has Numbers) {
	n.of[node] = has
	n.any = n.any || has != Numbers{}
}

// count reports whether the nodes of yes that have some number in common are enough, and
// whether they may be once those of hoped have answered.
func (n *numbers) count(c *Config, yes, hoped Set) (enough, may bool) {
	if !n.any || !numbersInCommon {
		return c.HasQuorum(yes), c.HasQuorum(yes | hoped)
	}
	may = c.HasQuorum(hoped)
	// Numbers that nodes have themselves come first: the node that is healed has it for longer.
	for _, before := range [...]bool{false, true} {
		for i := range c.Nodes {
			number := n.of[i].Own
			if before {
				number = n.of[i].Before
			}
			if !yes.Has(i) || before && number == 0 {
				continue
			}
			has := n.having(c, yes, number)
			if c.HasQuorum(has) {
				n.common = number
				return true, true
			}
			may = may || c.HasQuorum(has|hoped)
		}
	}
	return false, may
}

// having returns the nodes of yes that have the number.
func (n *numbers) having(c *Config, yes Set, number int64) (s Set) {
	for i := range c.Nodes {
		if yes.Has(i) && n.of[i].Have(number) {
			s = s.with(i)
		}
	}
	return s
}
