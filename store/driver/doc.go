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
// of them promises, and store/storetest tests that. All methods are required: one that
// the engine cannot keep returns an error that matches store.ErrUnsupported, and Caps says so
// where the client has to know beforehand (MutexesOnly, NoQueue).
package driver

import "github.com/leasehold-dev/leasehold/store"

// Engine keeps locks for a store.Store.
type Engine = store.Engine
