package waitq

// EventKind is what has happened.
type EventKind uint8

// The events. In brackets are the fields of Event that each uses.
const (
	// Arrive: a goroutine wants the lock. Unless it has to Try, it joins at once.
	Arrive EventKind = iota
	// Join: a goroutine that has arrived waits [Waiter].
	Join
	// TryGranted: the one attempt of a goroutine was granted.
	TryGranted
	// TryRefused: the attempt was not granted, and the goroutine waits [Waiter, Why].
	TryRefused
	// TryFailed: the attempt was not granted, and the goroutine does not wait.
	TryFailed
	// Enter: the goroutine that asks for the queue takes its next place [Rank].
	Enter
	// NewReason: there is a reason why the lock is not granted yet [Why, Pushed].
	NewReason
	// Granted: the lock was granted at the place.
	Granted
	// Refused: the store gave an answer that waiting cannot change. It ends all waits.
	Refused
	// PlaceOver: the goroutine that asked for the queue has given up its place, and
	// takes no other.
	PlaceOver
	// Ended: the context or the patience of a waiter has ended, so that it is about
	// to leave [Waiter].
	Ended
	// Leave: a waiter has left without an answer [Waiter].
	Leave
	// Reserve: a place was taken with the release of a lease [Rank].
	Reserve
	// Lapse: part of the time for which a place is reserved has passed.
	Lapse
)

// Event is something that happens to a queue.
type Event[T any] struct {
	Kind EventKind
	Why  Reason
	// Pushed says that the store reported the reason during a wait at the place, and
	// that the wait goes on.
	Pushed bool

	Waiter *Waiter[T]
	// Rank is the time of day in microseconds. It ranks a place among those of other
	// processes.
	Rank uint64
}

// Reason is a class of reasons why a lock is not granted.
type Reason uint8

const (
	// Busy: another owner has the lock.
	Busy Reason = iota
	// Closed: the store grants nothing for a time that it knows, as in quarantine.
	Closed
	// NoAnswer: the store gave no answer that helps.
	NoAnswer
)

// ActionKind is what a driver has to do.
type ActionKind uint8

// The actions. In brackets are the fields of Action that each uses.
const (
	// Try: make one attempt, and report it by TryGranted, TryRefused or TryFailed.
	Try ActionKind = iota
	// EnterYourself: the waiter's own goroutine asks the store for the queue: it steps
	// Enter at once [Waiter].
	EnterYourself
	// Start: start a goroutine that asks the store for the queue, and steps Enter
	// until there is no place to wait at.
	Start
	// Wait: take a place in the store's queue and wait there; or at the reserved place
	// [Reserved].
	Wait
	// GiveUp: give up the place in the store's queue [Reserved].
	GiveUp
	// Tell: have the waiter, which has just joined, read the reason [Waiter].
	Tell
	// TellListeners: have the waiters that listen read the reason anew.
	TellListeners
	// TellAll: have all waiters read the reason anew.
	TellAll
	// Refuse: end the wait with the store's answer [Waiter].
	Refuse
	// Give: the waiter has the lease that was granted [Waiter].
	Give
	// Discard: release what was granted at the place, since nobody wants it.
	Discard
)

// Action is something that the driver has to do.
type Action[T any] struct {
	Kind     ActionKind
	Reserved bool
	Waiter   *Waiter[T]
}
