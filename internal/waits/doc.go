// Package waits is how the goroutines of a client come by a lease: they ask the store, and queue for a
// lock that others hold. One goroutine at most asks the store for a queue, and what it is granted goes
// to the one that has waited longest. Package internal/waitq decides, and this package carries it out.
//
//   - queues.go: what all queues of a client share, and what a goroutine asks for
//   - acquire.go: asks once, and joins a queue if that is refused; asks again and again if the number
//     of attempts is bounded or the store keeps no queue
//   - queue.go: the goroutines of a client that want the same, and the news that wakes them
//   - waiter.go: one goroutine in a queue, from joining to its answer or its withdrawal
//   - place.go: a place in the store's queue, and what is granted there
//   - reservation.go: a place that was taken with a release, for the next turn
//   - positions.go: how many are before each waiter
//   - why.go: what an error means for a wait, and the error of a waiter that gives up, with the holder
//   - description.go: what a client says of itself in its requests
package waits
