package view

import (
	"cmp"
	"slices"
	"time"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// seenGrant is what the grants of one lease have in common on all nodes that count for it.
type seenGrant struct {
	shared bool // of a read-write lock
	owner  string
	weight int64
	slots  string // of a semaphore
}

// showShares completes the state of a lock if some of several nodes have a record of it.
func (v View) showShares(state *store.State) {
	said, records := v.Nodes, v.Records
	if !slices.ContainsFunc(records, func(r *script.Record) bool { return r != nil }) {
		return
	}
	// Nodes without a record may have a mutex of the same name.
	others := slices.Clone(said)
	for i, r := range records {
		if r != nil {
			others[i] = store.NodeOutcome{Node: said[i].Node, Outcome: store.Absent}
		}
	}
	v.Nodes = others
	*state = v.mutex(state.Name)
	state.Nodes = said
	kind, held, undecided := leasesIn(v.Config, silentAmong(said), records)
	state.Undecided = append(state.Undecided, undecided...)
	slices.SortFunc(state.Undecided, byGrant)
	if len(held) == 0 {
		return
	}
	first := held[0]
	state.Held, state.Kind, state.Holders = true, kind, held
	state.Holder, state.ExpiresIn, state.HeldFor = first.Holder, first.ExpiresIn, first.HeldFor
	state.Token, state.OtherTokens = first.Token, first.OtherTokens
	state.Queue = slices.DeleteFunc(mergeQueues(v.Queues, ""), func(p store.Place) bool {
		return slices.ContainsFunc(held, func(h store.Holding) bool { return h.Holder.Owner == p.Holder.Owner })
	})
}

// leasesIn returns the leases that are on a majority of the nodes, oldest first, with the kind
// of their lock, and the leases for which that depends on the silent nodes.
func leasesIn(cfg quorum.Config, silent quorum.Set, records []*script.Record) (kind store.Kind, held, undecided []store.Holding) {
	at := map[seenGrant][]*script.Held{} // what each node has of it; nil: nothing
	var kinds []store.Kind
	for i, r := range records {
		if r == nil {
			continue
		}
		for j := range r.Holders {
			h := &r.Holders[j]
			g := seenGrant{shared: r.Kind.Shared, owner: h.Holder.Owner, weight: h.Weight}
			if !r.Kind.Shared {
				g.slots = h.Slots
			}
			if at[g] == nil {
				at[g] = make([]*script.Held, len(records))
			}
			at[g][i] = h
		}
	}
	for g, its := range at {
		var has quorum.Set
		tokens, expires := make([]fence.Token, len(its)), make([]time.Duration, len(its))
		for i, h := range its {
			if h != nil {
				has |= quorum.SetOf(i)
				tokens[i], expires[i] = h.Token, h.ExpiresIn
			}
		}
		said := cfg.Tally(has, silent, expires)
		if !said.Held && !said.Undecided {
			continue
		}
		h := holdingOf(g, said.Nodes, its)
		h.Token, h.ExpiresIn = agreed(said, tokens), said.ExpiresIn
		if isOneLease(g.owner, said.Nodes, its) {
			h.OtherTokens = otherTokens(h.Token, said.Nodes, tokens)
		}
		if said.Held {
			kinds, held = append(kinds, records[has.First()].Kind), append(held, h)
		} else {
			h.Kind = records[has.First()].Kind
			undecided = append(undecided, h)
		}
	}
	slices.SortFunc(held, byGrant)
	if len(kinds) > 0 {
		kind = slices.MaxFunc(kinds, func(a, b store.Kind) int { return cmp.Compare(a.Limit, b.Limit) })
	}
	return kind, held, undecided
}

// holdingOf combines what those nodes have of a lease, except for its token and its end.
func holdingOf(g seenGrant, nodes quorum.Set, its []*script.Held) store.Holding {
	h := its[nodes.First()].Holding
	for i, o := range its {
		if nodes.Has(i) {
			h.HeldFor = max(h.HeldFor, o.HeldFor)
			h.Holder.Broken = h.Holder.Broken || o.Holder.Broken
		}
	}
	if g.shared {
		h.Slot = 0 // each node has its own
	}
	return h
}

// isOneLease reports whether what those nodes have certainly is one lease of owner.
func isOneLease(owner string, nodes quorum.Set, its []*script.Held) bool {
	first := its[nodes.First()]
	for i, h := range its {
		if nodes.Has(i) && h.Made != first.Made {
			return store.IsNewOwner(owner)
		}
	}
	return true
}
