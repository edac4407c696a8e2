package observe

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasehold-dev/leasehold/store"
)

const (
	// lookTimeout bounds one look. Redis has to look at all of its keys for it.
	lookTimeout = 20 * time.Second
	// inspections is how many locks a look inspects at most, and atOnce how many of them at
	// the same time. The waiters of a lock are only seen by inspecting it.
	inspections = 128
	atOnce      = 8
)

// looker looks at a store. Only one look is under way at a time.
type looker struct {
	st        *store.Store
	inspected map[string]inspected
	from      string // the round through all locks goes on after this name
}

// inspected is what Inspect said of a lock besides what List says.
type inspected struct {
	at     time.Time
	queue  []store.Place
	broken *store.Broken
}

// list asks for all locks. If it fails, the locks that it returns are not all.
func (k *looker) list(ctx context.Context) ([]store.State, error) {
	states, err := k.st.List(ctx, "")
	if err != nil && !errors.Is(err, store.ErrIncomplete) {
		return nil, err
	}
	slices.SortStableFunc(states, func(a, b store.State) int { return strings.Compare(a.Name, b.Name) })
	return states, err
}

// inspect inspects some of the locks: those whose leases are ending, those that people look
// at, those with waiters, and then all others in turn.
func (k *looker) inspect(ctx context.Context, ending []string, wanted map[string]bool, states []store.State) {
	if k.inspected == nil {
		k.inspected = map[string]inspected{}
	}
	chosen := map[string]bool{}
	choose := func(name string) {
		if len(chosen) < inspections {
			chosen[name] = true
		}
	}
	for _, name := range ending {
		choose(name)
	}
	for _, s := range states {
		if wanted[s.Name] {
			choose(s.Name)
		}
	}
	for _, s := range states {
		if len(k.inspected[s.Name].queue) > 0 {
			choose(s.Name)
		}
	}
	next, _ := slices.BinarySearchFunc(states, k.from, func(s store.State, name string) int { return strings.Compare(s.Name, name) })
	for i := range states {
		s := states[(next+i)%len(states)]
		if len(chosen) >= inspections {
			break
		}
		if s.Name != k.from || len(states) == 1 {
			choose(s.Name)
			k.from = s.Name
		}
	}

	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for name := range chosen {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			at := time.Now()
			s, err := k.st.Inspect(ctx, name)
			if err != nil {
				return // what was seen before remains
			}
			mu.Lock()
			defer mu.Unlock()
			k.inspected[name] = inspected{at, s.Queue, s.Broken}
		})
	}
	all.Wait()
}

// forget drops what Inspect said of locks that are not held any more.
func (k *looker) forget(states []store.State) {
	if len(k.inspected) == 0 {
		return
	}
	there := make(map[string]bool, len(states))
	for _, s := range states {
		there[s.Name] = true
	}
	for name := range k.inspected {
		if !there[name] {
			delete(k.inspected, name)
		}
	}
}

// nodes asks what the nodes of a store of several answer while no lock is held.
func (k *looker) nodes(ctx context.Context) []store.NodeOutcome {
	if k.st.Caps().Nodes < 2 {
		return nil
	}
	s, err := k.st.Inspect(ctx, "a name that nobody need use")
	if few := (*store.QuorumError)(nil); errors.As(err, &few) {
		return few.Nodes
	}
	return s.Nodes
}

// worst returns one outcome for each node: of those in all states, the first that is not as it
// should be.
func worst(states []store.State) []store.NodeOutcome {
	var nodes []store.NodeOutcome
	at := map[string]int{}
	for _, s := range states {
		for _, n := range s.Nodes {
			i, known := at[n.Node]
			switch {
			case !known:
				at[n.Node] = len(nodes)
				nodes = append(nodes, n)
			case Well(nodes[i]) && !Well(n):
				nodes[i] = n
			}
		}
	}
	slices.SortFunc(nodes, func(a, b store.NodeOutcome) int { return strings.Compare(a.Node, b.Node) })
	return nodes
}

// Well reports whether a node answers, and is not in quarantine.
func Well(n store.NodeOutcome) bool { return !n.Silent() && n.Outcome != store.Quarantined }
