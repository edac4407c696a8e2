package view

import (
	"slices"

	"github.com/leasehold-dev/leasehold/store"
)

// mergeQueues merges the queues of a lock's waiters from all nodes. An owner that has the
// lock on some nodes and waits at others is a waiter, unless it is the holder. With
// several nodes, owners are ordered by rank, as they will be in the end: the nodes'
// clocks differ.
func mergeQueues(queues [][]store.Place, holder string) []store.Place {
	var all []store.Place
	for _, queue := range queues {
		for _, p := range queue {
			i := slices.IndexFunc(all, func(q store.Place) bool { return q.Holder.Owner == p.Holder.Owner })
			switch {
			case p.Holder.Owner == holder:
			case i < 0:
				all = append(all, p)
			default:
				all[i].ExpiresIn = max(all[i].ExpiresIn, p.ExpiresIn)
			}
		}
	}
	if len(queues) > 1 {
		slices.SortStableFunc(all, func(a, b store.Place) int {
			switch {
			case store.Before(a.Holder.Owner, b.Holder.Owner):
				return -1
			case store.Before(b.Holder.Owner, a.Holder.Owner):
				return 1
			}
			return 0
		})
	}
	return all[:min(len(all), store.MaxQueue)]
}
