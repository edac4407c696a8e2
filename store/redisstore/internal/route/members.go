package route

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/leasehold-dev/leasehold/store/redisstore/internal/cluster"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/config"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/node"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/resp"
)

// members are the masters of a cluster, as far as they are known, and which of them has
// which slot.
type members struct {
	s     *node.Shared
	seeds []config.Address

	mu        sync.RWMutex
	closed    bool
	byHost    map[string]*node.Node  // by address
	table     [resp.Slots]*node.Node // which member has which slot; nil: unknown, or nobody
	changed   bool                   // a slot has moved since the last refresh
	epoch     uint64                 // the highest of the cluster that was seen; 0: none was
	nextAsked int                    // which member is asked for the slot map first; of the refresh loop
}

// MemberFor returns the member that has a slot; nil if it is unknown.
func (m *members) MemberFor(slot int) *node.Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table[slot]
}

// MemberOf returns the member that has a lock; nil if it is unknown.
func (m *members) MemberOf(name string) *node.Node {
	return m.MemberFor(cluster.SlotOf(cluster.KeyOf(name)))
}

// anybody returns one of the members, if possible one with a connection.
func (m *members) anybody() (found *node.Node) {
	for _, n := range m.AllMembers() {
		if found = n; n.Pipe() != nil {
			break
		}
	}
	return found
}

// memberAtLocked returns the member at that address.
func (m *members) memberAtLocked(host string) *node.Node {
	n := m.byHost[host]
	if n == nil && !m.closed {
		a := m.seeds[0]
		a.Host = host
		n = node.New(0, a, m.s)
		m.byHost[host] = n
	}
	return n
}

// memberAt returns the member at that address; nil after close.
func (m *members) memberAt(host string) *node.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.memberAtLocked(host)
}

// assign records that the member at host has a slot, and reports whether that is new. The
// member is nil after close.
func (m *members) assign(slot int, host string) (n *node.Node, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = m.memberAtLocked(host)
	if n == nil || m.table[slot] == n {
		return n, false
	}
	m.table[slot], m.changed = n, true
	return n, true
}

// install replaces the table, and forgets the members that have no slots. It reports
// whether a slot has moved since the last call, perhaps away and back.
func (m *members) install(slotMap []cluster.Range, epoch uint64) (has map[*node.Node]bool, gone []*node.Node, moved bool) {
	table := new([resp.Slots]*node.Node)
	has = map[*node.Node]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, nil, false
	}
	for _, s := range slotMap {
		n := m.memberAtLocked(s.Host)
		has[n] = true
		for i := s.First; i <= s.Last; i++ {
			table[i] = n
		}
	}
	moved = m.changed || epoch > m.epoch
	m.epoch = max(m.epoch, epoch)
	for i, n := range table {
		moved = moved || n != m.table[i] && m.table[i] != nil
	}
	m.table, m.changed = *table, false
	for host, n := range m.byHost {
		if !has[n] {
			delete(m.byHost, host)
			gone = append(gone, n)
		}
	}
	return has, gone, moved
}

// AllMembers returns all members that are known.
func (m *members) AllMembers() []*node.Node {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Collect(maps.Values(m.byHost))
}

// Masters returns the members that have slots.
func (m *members) Masters() (all []*node.Node) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, n := range m.table {
		if n != nil && (len(all) == 0 || all[len(all)-1] != n) && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// slotsOf returns the slots of a member, and whether there are any.
func (m *members) slotsOf(n *node.Node) (has []bool, some bool) {
	has = make([]bool, resp.Slots)
	m.mu.RLock()
	defer m.mu.RUnlock()
	for slot, m := range m.table {
		has[slot] = m == n
		some = some || m == n
	}
	return has, some
}

// known returns the members that are connected, and the addresses of the other members
// and of the seeds.
func (m *members) known() (connected []*node.Node, others []config.Address) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, n := range m.byHost {
		if n.Pipe() != nil {
			connected = append(connected, n)
		} else {
			others = append(others, n.Address)
		}
	}
	slices.SortFunc(connected, func(a, b *node.Node) int { return cmp.Compare(a.Address.Host, b.Address.Host) })
	if m.nextAsked++; len(connected) > 0 {
		at := m.nextAsked % len(connected)
		connected = slices.Concat(connected[at:], connected[:at])
	}
	for _, a := range m.seeds {
		if m.byHost[a.Host] == nil {
			others = append(others, a)
		}
	}
	return connected, others
}

// removeAll forgets all members, and knows none any more. It returns those there were.
func (m *members) removeAll() []*node.Node {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	all := slices.Collect(maps.Values(m.byHost))
	m.byHost = nil
	return all
}

func (m *members) isShut() bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.closed
}
