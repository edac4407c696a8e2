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

// View is what each server showed of a lock. State can be called once a quorum has answered.
type View struct {
	Config  quorum.Config
	Nodes   []store.NodeOutcome // its first holder
	Tokens  []fence.Token       // of that holder's lease
	Queues  [][]store.Place
	Records []*script.Record // of a lock that several can hold
	Notes   []*store.Broken
}

// New returns a view in which no server has shown anything. It has room for all of them.
func New(cfg quorum.Config) View {
	n := cfg.Nodes
	return View{cfg, make([]store.NodeOutcome, n), make([]fence.Token, n), make([][]store.Place, n), make([]*script.Record, n), make([]*store.Broken, n)}
}

// Answered reports whether a quorum of nodes showed the state of a lock.
func Answered(cfg quorum.Config, nodes []store.NodeOutcome) bool {
	var answered quorum.Set
	for i, n := range nodes {
		if n.Outcome == store.Taken || n.Outcome == store.Absent || n.Outcome == store.Quarantined {
			answered |= quorum.SetOf(i)
		}
	}
	return cfg.HasQuorum(answered)
}

// State returns the state of the lock that has the name.
func (v View) State(name string) store.State {
	state := v.mutex(name)
	if len(v.Nodes) == 1 {
		v.Records[0].Show(&state)
	} else {
		v.showShares(&state)
	}
	state.Broken = noted(v.Notes)
	return state
}

// silentAmong returns the nodes that are silent (see store.NodeOutcome).
func silentAmong(nodes []store.NodeOutcome) (silent quorum.Set) {
	for i, n := range nodes {
		if n.Silent() {
			silent |= quorum.SetOf(i)
		}
	}
	return silent
}

// mutex is State for a lock that one can hold.
func (v View) mutex(name string) store.State {
	nodes, tokens := v.Nodes, v.Tokens
	state := store.State{Name: name}
	if len(nodes) > 1 {
		state.Nodes = nodes
	}
	silent, expires := silentAmong(nodes), make([]time.Duration, len(nodes))
	for i, n := range nodes {
		expires[i] = n.ExpiresIn
	}
	for i, n := range nodes {
		has, holder := ownedBy(n.Holder, nodes)
		if n.Outcome != store.Taken || has.First() != i {
			continue
		}
		said := v.Config.Tally(has, silent, expires)
		h := store.Holding{Holder: holder, ExpiresIn: said.ExpiresIn, Weight: 1}
		if said.Held || said.Undecided {
			h.Token = agreed(said, tokens)
			if store.IsNewOwner(holder.Owner) { // see otherTokens
				h.OtherTokens = otherTokens(h.Token, said.Nodes, tokens)
			}
			h.HeldFor = store.HeldFor(h.Token, holder, time.Now())
		}
		switch {
		case said.Held:
			state.Held, state.Holder, state.ExpiresIn, state.HeldFor = true, h.Holder, h.ExpiresIn, h.HeldFor
			state.Token, state.OtherTokens = h.Token, h.OtherTokens
			state.Undecided, state.Queue = nil, mergeQueues(v.Queues, holder.Owner)
			return state
		case said.Undecided:
			state.Undecided = append(state.Undecided, h)
		}
	}
	slices.SortFunc(state.Undecided, byGrant)
	state.Queue = mergeQueues(v.Queues, "")
	return state
}

// byGrant orders leases by when they were granted, as far as that is known.
func byGrant(a, b store.Holding) int {
	return cmp.Or(cmp.Compare(b.HeldFor, a.HeldFor), cmp.Compare(a.Token, b.Token), cmp.Compare(a.Holder.Owner, b.Holder.Owner))
}

// agreed returns the token of the grant: the one that a majority of the nodes has. If some
// are silent, there may be none. Then it is the smallest, since a grant raises the counters
// of the nodes that are behind its token, and leaves alone those that are ahead.
func agreed(said quorum.Tally, tokens []fence.Token) fence.Token {
	var at []fence.Token
	for i, token := range tokens {
		if said.Nodes.Has(i) {
			at = append(at, token)
		}
	}
	slices.Sort(at)
	for i := range len(at) - said.Need + 1 {
		if at[i] == at[i+said.Need-1] {
			return at[i]
		}
	}
	return at[0]
}

// otherTokens returns the tokens that those nodes have of a lease beside shown. They must have the
// same lease: an owner that is fixed can have an earlier one on a node that missed its release.
func otherTokens(shown fence.Token, nodes quorum.Set, tokens []fence.Token) (others []fence.Token) {
	for i, token := range tokens {
		if nodes.Has(i) && token != shown && !slices.Contains(others, token) {
			others = append(others, token)
		}
	}
	return others
}

// ownedBy returns the nodes on which holder has the lock, and what they say of it.
func ownedBy(holder store.Holder, nodes []store.NodeOutcome) (quorum.Set, store.Holder) {
	var owned quorum.Set
	for i, n := range nodes {
		if n.Outcome == store.Taken && n.Holder.Owner == holder.Owner {
			owned |= quorum.SetOf(i)
			holder.Broken = holder.Broken || n.Holder.Broken
		}
	}
	return owned, holder
}

// noted returns the note about the broken lease with the largest token. If nodes have different
// notes about it, noted returns the most frequent one.
func noted(notes []*store.Broken) (found *store.Broken) {
	most := 0
	for _, b := range notes {
		n := 0
		for _, o := range notes {
			if b != nil && o != nil && *o == *b {
				n++
			}
		}
		if b != nil && (found == nil || b.Token > found.Token || b.Token == found.Token && n > most) {
			found, most = b, n
		}
	}
	return found
}
