package driver

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Many leases that are renewed together are asked about with few calls, where the
// nodes understand that; each has its vote all the same.

// order puts leases that can be renewed by one call next to each other; nil: they
// are as they come.
func (k *Driver) order(leases []store.Request) []int {
	alike := func(a, b store.Request) int {
		return cmp.Or(cmp.Compare(a.TTL, b.TTL), cmp.Compare(a.Require, b.Require))
	}
	if k.EncodeRenewals == nil || !slices.ContainsFunc(leases, func(r store.Request) bool { return alike(r, leases[0]) != 0 }) {
		return nil
	}
	order := make([]int, len(leases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return alike(leases[i], leases[j]) })
	return order
}

// place is that of the lease that comes i-th in an order.
func place(order []int, i int) int {
	if order == nil {
		return i
	}
	return order[i]
}

// part is what a node is asked with one call: about n leases, from the first.
type part struct {
	payload  any
	first, n int
}

// write makes the questions, which are the same for all nodes. The mutex is held.
func (b *ballot) write() {
	parts := b.parts[:0]
	for i := 0; i < len(b.leases); i += parts[len(parts)-1].n {
		if len(parts) == cap(parts) {
			parts = append(parts, part{})
		} else { // the payload of another time is there to be used again
			parts = parts[:len(parts)+1]
		}
		p := &parts[len(parts)-1]
		p.first, p.n = i, 1
		if b.op == quorum.Extend && b.k.EncodeRenewals != nil {
			p.payload, p.n = b.k.EncodeRenewals(b.leases[i:], p.payload)
		} else {
			p.payload = b.k.Encode(b.question(i), p.payload)
		}
	}
	b.parts = parts
}

// put asks a node about some leases. The mutex is held.
func (b *ballot) put(node int, p part, more bool) {
	c := Call{Payload: p.payload, Timeout: b.votes[p.first].NodeTimeout, To: b, Tag: p.first, Leases: p.n, More: more}
	err := b.then.with(c, node, b.k.Nodes[node].Put)
	if err == nil {
		b.users++
		return
	}
	now := b.k.Clock.Now()
	for i := p.first; i < p.first+p.n; i++ {
		b.note(i, node, PutOutcome(err))
		b.apply(i, quorum.Event{Kind: quorum.Unsent, Node: node}, now)
	}
}

// ReceiveBatch implements BatchReceiver.
func (b *ballot) ReceiveBatch(node, tag, n int, usual Reply, others []Exception) {
	b.mu.Lock()
	defer b.leave()
	if usual.RetrySingly {
		for i := tag; i < tag+n; i++ {
			b.put(node, part{b.k.Encode(b.question(i), nil), i, 1}, i < tag+n-1)
		}
		return
	}
	at := b.k.at(usual)
	b.k.trusts(node, usual, b.start, at)
	for i := range n {
		a := &usual
		if len(others) > 0 && others[0].Lease == i {
			a, others = &others[0].Reply, others[1:]
		}
		b.note(tag+i, node, a.Report)
		b.apply(tag+i, quorum.Event{Kind: a.Kind, Node: node}, at)
	}
}
