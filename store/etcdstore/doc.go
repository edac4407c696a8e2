// Package etcdstore keeps locks in an etcd cluster.
//
// The keys of a lock are those of concurrency.Mutex and of "etcdctl lock": these and the
// store exclude each other and take turns. A lock called NAME is theirs called
// PREFIX/NAME (see Options.Prefix), with "%" as "%25" and "/" as "%2F".
//
// # Why not 170 lines
//
// concurrency.Mutex of etcd's client has 170 lines. This package has the same keys and the same order. Each file
// adds what it lacks:
//
//	layout.go    names: with a slash, Mutex takes the lock "a/b" for a waiter of "a"
//	record.go    the holder of a lock, its purpose, and the time of its lease
//	view.go      a lock as it was at one revision, also with thousands of waiters
//	txn.go       transactions that can be sent twice
//	acquire.go   a try that does not wait, and leaves nothing behind if its answer is lost
//	wait.go      a place that is kept alive, watched from two sides, and made again if it expires
//	turn.go      the next step of a waiter: it enters, watches, or names the holder
//	inbox.go     hand-offs in a round trip: Mutex watches from the past, which etcd serves every 100 ms
//	release.go   a release that takes the next place in the same transaction, and is tried again
//	handoff.go   whom a release lets in: the next owner, a writer, readers, a permit
//	change.go    readers and permits: downgrades, and other numbers of permits
//	break.go     a lease that an operator takes away, so that its holder learns of it
//	inspect.go   the holders and waiters of a lock, and a list of all locks
//	lease.go     an etcd lease for each lock: Mutex loses all locks of a session at once. It is used again,
//	             since each new name slows etcd down until it compacts
//	holds.go     what this process holds, and whom its releases will let in
//	renew.go     renewals that are read through a majority, and survive a leader that stood still
//	batch.go     busy processes: twice the locks of 64 goroutines, on a network of 1 ms
//	replaced.go  restored backups and other clusters: nothing is granted while leases may be missing there
//	members.go   members that do not answer: another one is asked within a second
//	client.go    connections, and why there is none
//	link.go      one request to the cluster, and the error that its caller gets
//	fault.go     what an error of etcd leaves possible, and what to do about it
//	cluster.go   whether members and versions rule out two holders, so that a lock can require that
//	status.go    what members say of themselves, and whether they are of one cluster
//	examine.go   what "leasehold doctor" tells of a cluster
//	options.go   settings, and the least rights
//	url.go       settings in a URL
//	store.go     opening and closing
//
// # Time
//
// Each place in a queue, and so each lock that is held, is attached to a lease of etcd.
// The leader counts its TTL with a monotonic clock. If another member becomes the leader,
// all leases begin again, so they only become longer. A renewal is a keep-alive, and then
// a read through a majority that the lock still belongs to its owner.
//
// But a leader that stands still, is replaced and goes on may revoke leases that are still alive:
// it knows no renewals of its successor. It doesn't know leases either that were made after it
// was replaced. So the next renewal after each change of the leader attaches the key to a new lease.
//
// If the outcome of a request is unknown, its lease is revoked. That deletes what the
// request may have made, and the server refuses it if it comes later.
//
// # Waiting
//
// Places are in the order in which they were made, whatever kind of client made them. A
// release tells the next waiter in the same transaction, by writing a key that the
// waiter's process watches. Then the waiter reads the lock at the member that told it. A
// waiter also watches the place before its own, for owners that die and for native
// clients. If it is far back, it reads nothing else.
//
// # Kinds
//
// Semaphores and read-write locks have the same keys, whose values name the kind and the
// weight. As many of the oldest places hold the lock as fit together. Once a place does, it
// stays so, since later places come behind it and those before it only leave. So a heavy
// waiter and a writer are not passed, and a reader that dies frees only itself.
//
// A place whose turn has come enters by taking a slot, which is a key
// PREFIX/!slots/NAME/NUMBER attached to the same lease. The transaction fails if the key is
// there, so no slot has two holders. A mutex has one holder, its first place, and needs no slot.
//
// The transaction in which a place leaves lets in the next owner of a mutex, the next writer, the next
// readers, or the next waiter for a permit: no more than that, since the revision is their token. It
// fails if one of them has gone, and is made again. Others whose turn has come are notified, and enter by
// themselves. The first that still waits is notified as well, and watches all places. The others
// watch the place before them.
//
// The token is the revision at which the holder entered. A reader has that of the readers
// inside, if there are any, and its transaction fails if the one that it was read from has left. A
// downgrade changes the value of the writer's key, and with that its revision. Resize
// changes all values and removes all waiters in one transaction, so at most about a hundred
// of them.
//
// Native clients wait until all older places are gone, and so for all holders. While a
// native client has the lock, other kinds are refused. So is a place of another kind behind the
// place of a native client. The locks of etcd's recipes package have other keys and exclude nobody here.
//
// # Broken leases
//
// BreakLease writes into the value of the place that the lease is broken, so that native
// clients see the lock taken as before. The lock is free when the place is deleted: by its
// owner, with the end of its lease, or with BreakRequest.Now in the same transaction. Another
// key, attached to the lease of the place, refuses further places of the owner. The etcd lease
// is not revoked, since its process may use it for another lock by then.
//
// # Tokens
//
// A token is the revision at which the lock came to its owner, times 128, and so rises
// with every grant. It goes back if a backup is restored, unless that is
// done with "etcdutl snapshot restore --bump-revision --mark-compacted". A store that is
// open meanwhile notices the restored data and grants nothing for as long as the longest lease may last, and
// until the revision is what it was. A store that is opened later cannot know.
//
// # What survives
//
// Caps says what the cluster allows. Three or more voting members give store.Consensus if
// a leader that was replaced cannot revoke living leases there, which takes version 3.4.31,
// 3.5.13 or later. One or two members give store.CrashSafe, unless they run with
// --unsafe-no-fsync, which the store cannot see.
//
// Etcd's grpc-proxy answers keep-alives late, so that leases are lost through it.
//
// Turn on --auto-compaction-retention: etcd keeps every change until it is compacted.
package etcdstore
