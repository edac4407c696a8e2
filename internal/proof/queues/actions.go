package queues

import "github.com/leasehold-dev/leasehold/internal/waitq"

// Actions is a set of actions of queues.
type Actions uint32

// ReservedWait is the Wait at a place that was taken with a release.
const ReservedWait Actions = 1 << 31

// Did returns the set of these actions.
func Did(kinds ...waitq.ActionKind) (all Actions) {
	for _, k := range kinds {
		all |= 1 << k
	}
	return all
}

func (all *Actions) add(a waitq.Action[*goroutine]) {
	if *all |= 1 << a.Kind; a.Kind == waitq.Wait && a.Reserved {
		*all |= ReservedWait
	}
}
