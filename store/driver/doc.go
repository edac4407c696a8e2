// Package driver is for authors of engines: what store.New needs to keep locks in
// something that no package of this module knows.
//
// # Which way
//
// If the engine can replace one record by compare-and-set, do not write an Engine:
// package store/recordstore is one for all of those, and needs about a hundred lines of yours.
// Write an Engine if it has something better, such as scripts or sessions.
//
// # The contract
//
// An Engine performs atomic steps. The methods of store.Store of the same names say what each
// of them promises, and store/storetest tests that, also with faults between the store and its
// engine. All methods are required: one that the engine cannot keep returns an error that
// matches store.ErrUnsupported, and Caps says so where the client has to know beforehand
// (MutexesOnly, NoQueue).
//
// An engine itself refuses a lock that requires more than it can give: it may learn what it can give
// while it is asked, and it knows the reason. store.Lease.CheckClass is enough for most.
//
// # What an Engine need not do
//
// The Store refuses requests that are invalid, whose context has ended (except a Wait, which has to
// give up a place that was made for it), or that come after Close. It counts the calls under way,
// and closes the engine when they have returned. An engine that sets Caps.Timeout gets contexts
// that end by then, with store.ErrTimeLimit as the cause, and when the Store is closed.
package driver

import "github.com/leasehold-dev/leasehold/store"

// Engine keeps locks for a store.Store.
type Engine = store.Engine

// Starter is an Engine that can carry out calls without a goroutine that waits for each. Servers
// of many clients, such as "leasehold serve", then need fewer.
type Starter = store.Starter
