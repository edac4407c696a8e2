// Package queues searches every interleaving of the goroutines of a few processes that
// wait for one lock. In each process the queue is internal/waitq, as it ships. The store
// is one internal/proof/modelnode, which does what the scripts do, so a lock that is
// released is handed to the next place in its queue. What carries out the actions of a
// queue is a model of what the client does, in which each step is a move.
//
// A run has an end: each goroutine wants the lock a few times. Time stands still, so that
// no lease and no place ends by itself.
package queues

// Model is a world to search.
type Model struct {
	// Goroutines has the number of goroutines of each process, which want the lock Rounds
	// times each.
	Goroutines []int
	Rounds     int
	// Ends is how many contexts end while their goroutines wait.
	Ends int
	// Refusals is how often the store gives a place an answer that waiting cannot mend, as
	// it does when it is closed.
	Refusals int
	// Rejoins: a client that releases the lock, and wants it again, takes its next place
	// with the release.
	Rejoins bool
}

// Property is what must hold in every state.
type Property string

// The properties. The empty one is none.
const (
	// Mutex: at most one goroutine has the lock.
	Mutex Property = "two goroutines have the lock"
	// Tokens: each goroutine that gets the lock has a larger token than all before it.
	Tokens Property = "a token does not increase"
	// Asker: one goroutine of a process asks the store or waits there.
	Asker Property = "two ask for one queue"
	// Turn: a process keeps its turn in the store's queue as long as one of its goroutines
	// waits.
	Turn Property = "a process loses its turn"
	// Wanted: a goroutine whose context has ended is not given the lock.
	Wanted Property = "a goroutine that is about to leave has the lock"
	// Unused: no place in the store's queue is kept that no goroutine wants.
	Unused Property = "a place is kept that nobody wants"
	// Served: every goroutine gets the lock, or leaves.
	Served Property = "a goroutine waits for ever"
	// Left: in the end the lock is free and no places are left.
	Left Property = "something is left behind"
)
