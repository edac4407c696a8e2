// Package sim runs the production client over the production Redis store, with their
// goroutines and timers, in a world that is made up: servers, network, clocks, pauses
// and crashes. The store dials through Options.Dial and speaks the Redis protocol with
// servers of internal/testenv/simredis, which run its Lua scripts. Time is virtual
// (testing/synctest), so a minute of it takes some milliseconds. A judge watches what
// holders of leases see, and what the servers keep.
//
// The files are layers: the script, the time, the history and the commands (time.go,
// history.go, command.go); the world of clients, links, nodes and workers (world.go); above it
// the faults (fault.go) and the judge (judge.go), which the world sees as a watcher.
//
// # One script, one history
//
// A run is decided by its Script, to the last event: by no scheduler, no number
// of processors, no race detector, no random source of the production code. One
// goroutine, the driver, does everything that happens outside of the clients.
// It waits until all others are blocked, takes what they have written, and lets
// exactly one thing happen. No two things that could disturb each other share a
// nanosecond. Where several goroutines of a client act at one instant:
//
//   - What they write to one server is one segment. The server does its commands in the
//     order of their owners, and answers in the order in which they were written. A list
//     of steps, which goes out as one command, is taken apart for that.
//   - The store's own goroutines go on in turn, with what others do at that instant
//     done before (clock.Simulated).
//
// Pauses of the store come from the script; owners, which are random, are numbered as
// they appear.
//
// AnyOfSeed makes the script of a seed. Scripts also come from rapid, and from
// files in testdata/kept, where those stay that found something.
//
// # What is not simulated
//
// Connections are no TCP sockets, so the store writes from its own goroutine and reads
// with a goroutine for each connection: the ways around these (direct_unix.go, inline_reader.go)
// are left to tests with real servers, as are TLS, sentinels and clusters.
//
// # What is assumed
//
// No fault of a script may break a promise as long as this holds; what Kind says
// of each fault keeps within it:
//
//   - A connection delivers what was sent on it in order, once, or not at all;
//     of one that breaks, a first part, which may arrive after what the next one
//     carries. Somebody on the way may send commands twice (Replay): locks can
//     then stay behind until their TTL is over, and nothing worse.
//   - A node does one command at a time, each as one step, and what it answers
//     is so. It may be slow, down, out of reach, or answer errors, for any time.
//   - A node may come back with less than it had: nothing, or all but the last second
//     of its writes. Any number may, at once or in turn. That they take part in
//     nothing until it is safe is up to the clients and the scripts.
//   - A node's clock is as fast as a client's to within 1 % (0.95 % here). Its
//     time of day may be wrong and may be set back, by less than the quarantine
//     in all; it is not set ahead.
//   - A client's clock goes on while its machine is suspended, and is as fast as
//     its timers. Its time of day may be anything.
//   - A client may be stopped at any point, for any time, or die.
//
// TestAssumptionsAreNeeded takes each away and sees that a promise breaks.
//
// # What is checked
//
// Two leases of one lock are never valid at once, neither by Lease.Err nor by
// the context, judged whenever a lease begins and whenever a stopped process
// goes on. A holder that runs is notified, by its context, LockOptions.Notice before
// a majority of nodes can grant the lock to others. (After its machine was suspended the
// context may end a quarter of a second late; Err is right at once.) Tokens
// increase from grant to grant, and no holder that believes in its lease comes
// to the resource with a smaller token than was seen there. Each attempt has an owner of its own. An operator (Script.Operator)
// ends no other lease than the one that it was shown, and a lease that it breaks ends as any
// other. If it frees the lock at once, the resource refuses what the former holder writes late. A
// client that did not know yet of the lease asks on under its owner, and what it is granted after that
// is a lease like any other. A lock that was released is free on a majority; one that was called gone is gone. No node is
// left without a release of what it granted, gives a lock after its release, or
// keeps one after the end; no goroutine stays. A lock that nobody has is granted to
// a waiter within four node timeouts and a quarter of a second, while
// that waiter reaches a majority that may grant (see idle). When all faults are over,
// every client that wants the lock gets it, keeps it as long as it wants and
// releases it.
//
// Each step that a node or a client takes for a mutex is also one of the steps that package induct
// proves (trace.go).
//
// # How a process that is stopped is simulated
//
// Goroutines cannot be stopped from outside. The goroutines of a paused client run on,
// but read on their clock the instant at which the process will go on, and
// nobody sees anything they do before that instant. So they do what a process
// does that wakes up and finds all its timers fired and, as the script wants
// it, its sockets full. While all client machines are suspended (Doze) it is the
// other way round: no bubble time passes, the nodes live through it alone, and
// the clients' clocks jump while their timers have as long to go as before.
package sim
