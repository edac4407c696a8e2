// Package etcdstore keeps locks in an etcd cluster.
//
// The keys of a lock are those of concurrency.Mutex and of "etcdctl lock": these and the
// store exclude each other and take turns. A lock called NAME is theirs called
// PREFIX/NAME (see Options.Prefix), with "%" as "%25" and "/" as "%2F".
//
// # Time
//
// Each place in a queue, and so each lock that is held, is attached to a lease of etcd.
// The leader counts its TTL with a monotonic clock. If another member becomes the leader,
// all leases begin again, so they only become longer. A renewal is a keep-alive, and then
// a read through a majority that the lock still belongs to its owner.
//
// If the outcome of a request is unknown, its lease is revoked. That deletes what the
// request may have made, and the server refuses it if it comes later.
//
// # Waiting
//
// Places are in the order in which they were made, whatever kind of client made them. A
// release tells the next waiter in the same transaction, by writing a key that the
// waiter's process watches. A waiter also watches the place before its own, for owners
// that die and for native clients.
//
// # Tokens
//
// A token is the revision at which the lock came to its owner, times 128, and so rises
// with every grant of every lock. It goes back if a backup is restored, unless that is
// done with "etcdutl snapshot restore --bump-revision --mark-compacted". A store that is
// open meanwhile notices the restored data and grants nothing for Options.MaxTTL, and
// until the revision is what it was. One that is opened later cannot know.
//
// # What survives
//
// Caps says what the cluster allows. Three or more voting members, of a version in which
// a leader that was replaced cannot revoke living leases (3.4.31, 3.5.13 or later), are
// for consensus. One or two members are crash-safe, unless they run with
// --unsafe-no-fsync, which the store cannot see.
//
// Turn on --auto-compaction-retention: etcd remembers every change until then.
package etcdstore
