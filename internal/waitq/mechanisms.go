//go:build !mutants

package waitq

// These are the mechanisms that the queue's invariants rest on. Here they are
// constants. The checkers' build makes them variables, to show that each is needed.
const (
	// unwantedReleased: a grant that nobody waits for any more is released.
	unwantedReleased = true
	// placeKept: a place in the store's queue, or its rank, outlasts the waiter that
	// took it.
	placeKept = true
	// placeGivenUp: the last waiter to leave gives the place up.
	placeGivenUp = true
	// returnedGivenUp: a place that was taken with a release is given up when nobody
	// wants it.
	returnedGivenUp = true
	// oneAsker: a goroutine that is about to ask for the queue is enough.
	oneAsker = true
	// endedPassedOver: a waiter that is about to leave is given nothing.
	endedPassedOver = true
)
