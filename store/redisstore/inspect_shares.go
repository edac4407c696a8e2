package redisstore

import (
	"cmp"
	"slices"

	"github.com/leasehold-dev/leasehold/fence"
	"github.com/leasehold-dev/leasehold/internal/quorum"
	"github.com/leasehold-dev/leasehold/store"
	"github.com/leasehold-dev/leasehold/store/redisstore/internal/script"
)

// seenGrant is what the grants of one lease have in common on all nodes that count for it.
type seenGrant struct {
	kind   store.Kind
	owner  string
	weight int64
	slots  string // of a semaphore
}

// showShares completes the state of a lock for which some of several nodes have a record.
// said is what the nodes said.
func showShares(state *store.State, cfg quorum.Config, said []store.NodeOutcome, records []*script.Record, tokens []fence.Token, queues [][]store.Place) {
	if !slices.ContainsFunc(records, func(r *script.Record) bool { return r != nil }) {
		return
	}
	// The rest of the state is about a mutex, as far as nodes have one.
	others := slices.Clone(said)
	for i, r := range records {
		if r != nil {
			others[i] = store.NodeOutcome{Node: said[i].Node, Outcome: store.Absent}
		}
	}
	*state = stateOf(state.Name, cfg, others, tokens, queues)
	state.Nodes = said
	kind, held := majorities(cfg, records)
	if len(held) == 0 {
		return
	}
	first := held[0]
	state.Held, state.Kind, state.Holders = true, kind, held
	state.Holder, state.Token, state.ExpiresIn, state.HeldFor = first.Holder, first.Token, first.ExpiresIn, first.HeldFor
	state.Queue = slices.DeleteFunc(mergeQueues(queues, ""), func(p store.Place) bool {
		return slices.ContainsFunc(held, func(h store.Holding) bool { return h.Holder.Owner == p.Holder.Owner })
	})
}

// majorities returns the leases that are on a majority of the nodes, oldest first, and the
// kind of their lock.
func majorities(cfg quorum.Config, records []*script.Record) (kind store.Kind, held []store.Holding) {
	seen := map[seenGrant][]int{} // the nodes
	at := map[seenGrant][]store.Holding{}
	for i, r := range records {
		if r == nil {
			continue
		}
		for _, h := range r.Holders {
			g := seenGrant{kind: r.Kind, owner: h.Holder.Owner, weight: h.Weight}
			if !r.Kind.Shared {
				g.slots = h.Slots
			}
			seen[g], at[g] = append(seen[g], i), append(at[g], h.Holding)
		}
	}
	for g, nodes := range seen {
		for _, set := range cfg.JointSets() {
			var its []store.Holding
			for i, n := range nodes {
				if set.Has(n) {
					its = append(its, at[g][i])
				}
			}
			if need := quorum.Majority(set.Size()); len(its) >= need {
				kind, held = g.kind, append(held, holdingOf(g, its, need))
				break
			}
		}
	}
	slices.SortFunc(held, func(a, b store.Holding) int {
		return cmp.Or(cmp.Compare(b.HeldFor, a.HeldFor), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Holder.Owner, b.Holder.Owner))
	})
	return kind, held
}

// holdingOf combines the grants of a lease on a majority of need nodes.
func holdingOf(g seenGrant, its []store.Holding, need int) store.Holding {
	h := its[0]
	tokens, left := make([]fence.Token, len(its)), make([]store.NodeOutcome, len(its))
	all := make([]int, len(its))
	for i, o := range its {
		tokens[i], left[i].ExpiresIn, all[i] = o.Token, o.ExpiresIn, i
		h.HeldFor = max(h.HeldFor, o.HeldFor)
		h.Holder.Broken = h.Holder.Broken || o.Holder.Broken
	}
	h.Token, h.ExpiresIn = agreed(all, tokens, need), heldFor(all, left, need)
	if g.kind.Shared {
		h.Slot = 0 // each node has its own
	}
	return h
}
