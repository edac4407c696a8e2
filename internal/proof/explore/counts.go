package explore

// Action is something that happens in a world with Returns.
type Action uint8

// The actions.
const (
	// Returned: a lease was released with a place for the next attempt.
	Returned Action = iota
	// Placed: a node gave it that place. Bare: there was no holder to wait behind.
	Placed
	Bare
	// Claimed: a goroutine claimed the attempt. Dropped: it was given up.
	Claimed
	Dropped
	// Early: it was won before. Yielded: it gave way before.
	Early
	Yielded
	actions
)

var actionNames = [actions]string{
	Returned: "a release with a place for the next attempt", Placed: "that place is given", Bare: "nobody to stand behind",
	Claimed: "the attempt is claimed", Dropped: "it is given up", Early: "it is won before it is claimed", Yielded: "it gives way before it is claimed",
}

func (d Action) String() string { return actionNames[d] }

// Actions counts how often each happened, on all paths that were searched.
type Actions [actions]int

func (d *Actions) add(more Actions) {
	for i, n := range more {
		d[i] += n
	}
}
