package driver

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
)

// Leases that are renewed together share few calls, if the nodes understand that. Each
// lease has a vote of its own all the same.

// batchOrder returns an order in which leases that fit into one call are adjacent. Nil
// is the given order.
func batchOrder(leases []store.Lease) []int {
	alike := func(a, b store.Lease) int {
		return cmp.Or(cmp.Compare(a.TTL, b.TTL), cmp.Compare(a.Require, b.Require), cmp.Compare(mutexes(a), mutexes(b)), sharing(a, b))
	}
	if !slices.ContainsFunc(leases, func(r store.Lease) bool { return alike(r, leases[0]) != 0 }) {
		return nil
	}
	order := make([]int, len(leases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return alike(leases[i], leases[j]) })
	return order
}

// mutexes is 0 for a mutex, and 1 for another kind of lock.
func mutexes(r store.Lease) int {
	if r.Kind.IsMutex() {
		return 0
	}
	return 1
}

// sharing orders the leases of locks that several can hold by lock: a node renews adjacent leases
// of one lock in one step.
func sharing(a, b store.Lease) int {
	if a.Kind.IsMutex() || b.Kind.IsMutex() {
		return 0
	}
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Weight, b.Weight))
}

// inOrder returns the index of the i-th lease in an order.
func inOrder(order []int, i int) int {
	if order == nil {
		return i
	}
	return order[i]
}

// batch is one call to a node: about n leases, starting with first.
type batch[P any] struct {
	payload  P
	first, n int
}

// encodeLocked makes the payloads, which are the same for all nodes.
func (b *ballot[P]) encodeLocked() {
	parts := b.batches[:0]
	for i := 0; i < len(b.leases); i += parts[len(parts)-1].n {
		if len(parts) == cap(parts) {
			parts = append(parts, batch[P]{})
		} else { // reuse the payload of an earlier ballot
			parts = parts[:len(parts)+1]
		}
		p := &parts[len(parts)-1]
		p.first, p.n = i, 1
		if b.op == quorum.Extend && b.k.EncodeRenewals != nil {
			p.payload, p.n = b.k.EncodeRenewals(b.leases[i:], p.payload)
		} else {
			p.payload = b.k.Encode(b.questionFor(i), p.payload)
		}
	}
	b.batches = parts
}

// putLocked asks a node about a batch of leases.
func (b *ballot[P]) putLocked(node int, p batch[P], more bool) {
	c := Call[P]{Payload: p.payload, Timeout: b.votes[p.first].NodeTimeout, To: b, Tag: p.first, Leases: p.n, More: more}
	err := b.then.putWith(c, node, b.k.Nodes[node].Put)
	if err == nil {
		b.users++
		return
	}
	b.leftLocked(node, quorum.Unsent)
	now := b.k.Clock.Now()
	for i := p.first; i < p.first+p.n; i++ {
		b.noteLocked(i, node, PutOutcome(err))
		b.applyLocked(i, quorum.Event{Kind: quorum.Unsent, Node: node}, now)
	}
}

// ReceiveBatch implements BatchReceiver.
func (b *ballot[P]) ReceiveBatch(node, tag, n int, usual Reply, exceptions []Exception) {
	b.mu.Lock()
	defer b.doneLocked()
	if usual.RetrySingly {
		for i := tag; i < tag+n; i++ {
			b.putLocked(node, batch[P]{payloadOf(b.k, b.questionFor(i)), i, 1}, i < tag+n-1)
		}
		return
	}
	at := b.k.receivedAt(usual)
	b.k.checkClock(node, usual, b.start, at)
	for i := range n {
		a := &usual
		if len(exceptions) > 0 && exceptions[0].Lease == i {
			a, exceptions = &exceptions[0].Reply, exceptions[1:]
		}
		b.answerLocked(tag+i, node, *a, at)
	}
}
