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
//     the arguments of gate after its own, if it looks at the mark. This is the short way: a
//     list of one step would cost the server a third more.
//   - In a list, with other steps for any locks: as a call of the script steps. Its keys are
//     those of the steps, in order, and then that of the mark. Its arguments are whether the
//     mark is given, then for each step its letter and its arguments, and then those of gate.
//     The reply has those to the steps, in order; one that failed has an error in its place.
//
// A command is encoded once, alone, and a StepList copies its keys and its arguments. So both
// have the same order, and a step needs no other code in Go to be sent in a list. In Lua a
// step is one function, which both scripts call. The text of a script is part of a call, so
// no version of a client meets a script of another one: a step may change its keys and
// arguments, and steps may be added, without regard to clients that are older.
//
// # Other kinds of lock
//
// A step of another kind of lock, such as a read-write lock or a semaphore, has a letter of
// its own. All that such a lock has is one value at the lock's key: a record, which begins
// with a space and the letter of the kind, and has the present grants, each with owner,
// token, weight and end. The value of a mutex begins with its owner, which has no spaces, so
// a client that only knows mutexes takes the lock for held by another client. The first key of
// the step is the lock's, so the list reads the record together with the values of all
// others, and passes it to the step's function; its counter, its tombstones and its queue
// have the same keys as those of a mutex. The record's TTL is that of its longest grant, and
// the function leaves out those that have ended by the clock that the list has read.
package script
