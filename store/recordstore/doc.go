// Package recordstore is a complete store over anything that can replace one record by
// compare-and-set: a table, a key-value bucket, an object store, a folder of files. It
// keeps one record for each lock, runs internal/rule on it, and writes it back. An engine
// is a Driver, of about a hundred lines: the example has a whole one, and docs/engines.md says
// how to write it.
//
// # Time
//
// A record has no absolute time. Each lease and each place in the queue has a TTL and a
// beat: a random number that every renewal replaces. An entry is over when its beat has
// stood unchanged for its TTL, by the clock of the client that looks. The owner counts
// its validity from before it wrote the beat, so it stops earlier than anybody else
// begins. No clock is compared with another one.
//
// A client counts from when it first saw a beat. Two things let it count from earlier:
// each writer notes for how long it has known the beats that it leaves, and an engine
// that dates its records says how long ago the record was written (Item.Written and Now).
// Without the second, a client that finds the lock of a dead holder waits one TTL more.
//
// An engine whose clients are processes of one machine can tell that a process has ended
// (Peers). Its leases and places are then over at once.
//
// # Outcomes
//
// A write without an answer may have taken effect, or may yet. Each version has a number
// and the random identifiers of the last writes, so reading the record tells: the write was
// applied, can no longer be, or is pending. A pending write is sent again as it was. To
// undo an attempt, the store replaces the record even if it finds nothing of the attempt
// in it: a late write of the attempt then meets another version.
//
// # Load
//
// A client knows the version of its own last write, so an uncontended lock is one write
// and a release another one. What one process wants of one lock goes into one write, at
// most one of which is in flight, so the process never competes with itself.
//
// # Files
//
//	driver.go    what an engine implements
//	store.go     the Store, and the steps of a lease
//	change.go    the steps that change a lock in use: downgrade, resize, break
//	look.go      Inspect and List
//	wait.go      Wait, and a place that a release reserves
//	register.go  what this process knows of one record, and its steps in turn
//	turns.go     leaving a record to other clients now and then
//	follow.go    learning of other clients' writes
//	snapshot.go  one version of a record, on this client's clock
//	peers.go     waking other clients, and those that have ended
//	wire.go      the record as bytes
package recordstore
