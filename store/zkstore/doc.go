// Package zkstore keeps locks in ZooKeeper.
//
// A lock is a node. The ephemeral sequential nodes below it are its queue, and the first of
// them has the lock. They are named as by Apache Curator (InterProcessMutex) and by go-zookeeper
// (Lock), so that these and a Store exclude each other if they use the same path: the
// lock "invoices" of a Store with the default Options.Base is /leasehold/invoices there.
// In names of locks, characters other than printable ASCII, and % and /, are written as
// %XX.
//
// Read-write locks are those of Curator (InterProcessReadWriteLock), with which they
// exclude each other. A semaphore has places that show its size and their weight; see
// docs/zookeeper.md for the layout, and for why it is not Curator's.
//
// # Why not 170 lines
//
// go-zookeeper's Lock, of 170 lines, has a place made and waits for the one before it. It has no
// token, no time limit, no other kinds, and does not notice that its session has ended. What each
// file here adds:
//
//	names.go      names of locks and of places, as Curator writes them; kinds in them
//	record.go     what a place says: its owner, and slots and tokens that holders share
//	queue.go      the places in order, by internal/rule: all kinds of locks
//	tree.go       reading and finding places as the leader knows them; making nodes
//	place.go      one place: made although an answer is lost, and removed although the caller has gone
//	free.go       locks that were free lately: a place without a list of the queue
//	acquire.go    one attempt: a grant, or the holder in the way, with nothing left behind
//	wait.go       waiting: one look at the queue, one watch, and a grant without a look if possible
//	agree.go      slots of semaphores and tokens of readers, agreed on one holder after the other
//	lease.go      leases of this process, which end if nobody renews them while the session lives
//	renew.go      renewals that prove the session alive; leases that move to another session
//	release.go    releases, alone or with the place of the next turn in the same transaction
//	inspect.go    the holders and waiters of a lock, for errors and for people
//	break.go      an operator ends a lease: the requests
//	breakstep.go  the same: what is to be done
//	notes.go      the same: what is written down, so that late requests are refused
//	listen.go     the same: the holder learns of it at once
//	ensemble.go   the servers: limits of sessions, voting members, sessions by TTL
//	examine.go    what the doctor asks
//	options.go    options and the URL
//	errors.go     errors that say what to do
//	store.go      the engine, and how it is closed
//	internal/zk   a small client: sessions, what proves that they live, requests in a row
//
// # Time
//
// A lease lives in a session. The store has one session for each TTL, rounded up to the
// servers' tickTime, and asks the servers for an answer three times a tick while it is in
// use. The leader ends sessions, and the servers that clients are connected to report the
// clients to it only now and then. So the timeout of a session is three ticks longer than
// the TTL of its leases. A grant or a renewal counts from the last instant for which it is
// proven that the leader knew of the session: by a write that a majority has accepted, and
// by regular answers. A server that is cut off from its leader proves nothing, although
// it goes on answering that a place is there.
//
// A lease that nobody renews while its process lives is ended by the store. When a
// process dies, its leases last for up to five ticks longer than their TTL. The tickTime
// is taken from the shortest session that the servers grant; see Options.Tick.
//
// # Tokens
//
// The token of a lease is twice the zxid of the transaction that made its place. Numbers of
// places are no tokens: they begin again when the lock's node was removed. Readers share the
// token of the first of them. A writer that becomes a reader has the token after its own.
//
// # Waiting
//
// A waiter watches the place before its own, as Curator's do, and is notified by its server
// when that is gone. A waiter for a mutex with only the holder before it also watches its own
// place, so that it need not list the queue again: that would be a second round trip in each turn. A
// reader watches the last writer before it, and the first waiter for a semaphore watches all
// places.
//
// ZooKeeper numbers places with 31 bits. If a lock has had 2^31 places, new ones are refused until
// nobody has a place there. The store then removes the lock's node, and numbers begin again.
//
// ReleaseAndRejoin deletes the place of a mutex and makes the next one in one transaction, and
// lists the queue right after that. If nobody waits, it deletes the new place again. A holder that has seen
// several waiters watches the last of them instead, and lists nothing. A waiter in a place that was made so reads
// who the holder is only if it waits for long. Acquire makes a place and lists the queue in one round trip as well.
//
// # Broken leases
//
// BreakLease marks a place and leaves it in its session, so that all others go on waiting. A
// renewal reads the place after a write that proves its session alive, and so sees the
// breaks before that. The validity of a grant counts from no later than the moment when its
// place was last known to be unbroken. So a lease is over a TTL after the break, even if its
// process ignores that. Each store has one watch, which tells the holders.
//
// # What survives
//
// An ensemble of three or more gives store.Consensus, and one server store.CrashSafe,
// unless the servers run with forceSync=no: then a crash of one server, or of a majority
// at once, can lose a grant. A lease can be renewed and released through another Store:
// its place moves there. Caps tells how many members there were when the store was
// opened.
//
// # Rights
//
// Without Options.Auth, anybody may change the locks. With an identity, only that identity
// may, and Options.Readers may look. This is set for nodes that the store makes; Base is
// made by the store if it is missing, or by an administrator as "leasehold acl"
// says. TLS is not supported.
package zkstore
