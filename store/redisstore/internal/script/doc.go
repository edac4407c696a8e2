// Package script is what a store and the Lua scripts on a server say to each other. It loads
// the scripts, encodes questions about locks as calls of them, and reads their answers,
// their pushes, and the errors that they end with. It names all keys and channels.
//
// It knows no connections: it turns values into bytes and replies into values.
//
// # Steps
//
// A step is what one command does to one lock: acquire, confirm, extend, heal, release, or
// release and rejoin. It has a number of keys and of arguments, one for each field, a letter,
// and a reply. There are two ways to send it.
//
//   - Alone: as a call of the step's own script, with the key of the mark after its keys and
//     how it should begin after its own arguments, if it looks at the mark. This is the short way:
//     a list of one step would cost the server more.
//   - In a list, with other steps for any locks: as a call of the script steps. Its keys are
//     those of the steps, in order, and then that of the mark, or in a cluster one that is never
//     written (see WholeEnd). Its arguments are a number that
//     says whether the mark is given, then for each step its letter and its arguments, and then
//     how the mark should begin. The first argument of the most frequent steps begins with their
//     letter. The reply has the clock and the replies to the steps, in order; one that failed has
//     an error in its place. If all were done as they were asked, it is the clock alone. Steps
//     for different mutexes are read in fewer keys: see calls/steps.lua.
//
// A command is encoded once, alone, and a StepList copies its keys and its arguments. So both
// have the same order, and a step needs no other code in Go to be sent in a list. In Lua a
// step is one function, which both scripts call. The text of a script is part of a call, so
// no version of a client meets a script of another one: a step may change its keys and
// arguments, and steps may be added, without regard to clients that are older.
//
// # Why scripts
//
// Commands with conditions could do the same checks for a free mutex: SET NX, MGET for the
// tombstone and the mark, TIME, and ZSCORE, ZADD GT and PEXPIRE for the token; then SET for the
// tombstone, and DELIFEQ. They cost a server with Valkey 9.1 more for a lock and unlock than
// steps do: 13.6 to 14.2 us of CPU with 16 goroutines and 11.1 to 11.6 with 256, where steps cost
// 12.7 to 16.5 and 8.8 to 9.9 (three runs in turns, on two busy processors). SET NX and DELIFEQ
// by themselves cost 4.8 and 3.0 us, and give neither a token nor a queue.
//
// # Words on the wire
//
// Programs of different versions share these keys and texts, so their words stay as they are.
// For a lock L they mean:
//
//	{L}:line          the queue: a list of its places, in order
//	{L}:place:OWNER   a place in the queue
//	{L}:waits         that the queue has waiters, and what a release needs to know of them
//	{L}:gone:OWNER    the tombstone of an owner
//	{L}:token         the counter of fencing tokens
//	leasehold:node    the mark of the server (internal/nodemark): shut means in quarantine,
//	                  print is the fingerprint of a membership and list the membership, told
//	                  is when a majority of the membership before knew of it
//	handed, free      pushes: the owner was granted the lock; it may compete for the lock
//
// # Other kinds of lock
//
// Each grant of a lock that several can hold, such as a read-write lock or a semaphore, has a field
// of its own in the hash {L}:held, and its end in the sorted set {L}:ends; see readRecord.lua. So
// a step costs the same however many hold the lock. The first grant of a free lock is in the lock's
// key alone until another step needs more: a lock and unlock then costs a server half as much. The value of the lock's key begins with a
// space and the letter of the kind. That of a mutex begins with its owner, which has no spaces, so
// a client that only knows mutexes takes the lock for held by another client. The counter, the tombstones and the queue of such a lock
// have the same keys as those of a mutex. A place in the queue also has the kind and the weight
// that its owner wants, in a form to which the steps of a mutex hand nothing.
//
// The lock's key lasts as long as its longest grant or place, so while the lock is in use its kind
// is known. Each step removes the grants that have ended, and a step that may have made room
// hands the lock to as many waiters as fit, in order (advance.lua), with a push to each.
//
// On one of several servers each permit of a semaphore is numbered, and a grant counts if a
// majority gave the same slots; see internal/quorum. A request then says which slots it wants or
// must have. Tokens are confirmed (confirmHold), and a lease comes back to a server that has lost
// it by admit, which draws a token: the next reader there shares it.
//
// One family of steps is for all of these kinds: admit, renewHold, endHold, confirmHold and, for
// what is rare, change. Each is a function that does what the function of internal/rule does: Admit,
// Renew, Release, ConfirmToken, and Downgrade, Resize or BreakLease. They have a list script of their own,
// shareSteps, so that lists of mutexes' steps stay as short as they were.
package script
