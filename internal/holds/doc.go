// Package holds keeps the grants that a client has: it renews each, tells its holder of its loss in
// time, and releases it. It does not know how a grant was waited for.
//
//   - holds.go: what all grants of a client share: the store, the clock, the mutex, the user's functions
//   - hold.go: one grant, from its arrival to its end, on internal/leasefsm
//   - lease.go: one holder's part of a grant, which others may re-enter
//   - renewal.go: carries out what internal/renewer finds due, and asks who broke a lease that is gone
//   - hint.go: renews a lease at once when the store says that it was broken
//   - release.go: how a lease leaves its grant, and how the last one frees the lock
//   - downgrade.go: a writer's grant becomes a reader's
package holds
