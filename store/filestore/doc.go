// Package filestore keeps locks in an SQL database, one row per lock. A step is
// one transaction: read the row, run the rule, write the row back. What a lock
// means is not decided here.
//
// OpenFile is the usual way in: it keeps the locks in an SQLite file, and they
// hold between all processes of one machine that open the same file. New takes
// a handle the caller has opened and the Dialect that fits it.
//
// # Time in a file
//
// A server has a clock of its own, a file has none. There the machine's clock
// since boot counts the TTLs. On Linux it goes on counting while the machine is
// suspended. Nobody sets it, so a wall clock that jumps expires nothing and
// prolongs nothing. It starts again at every boot, so the file also remembers
// the boot's id: after a reboot, which no holder survived, every lease in the
// file is void, and the tokens go on above the last.
//
// Processes that share a file must therefore see the same boot id. Containers
// of one machine usually do; systemd-nspawn shows each of its containers one
// of its own, and other machines have their own. Sharing a file with those does
// not work, nor does any network file system, whose locks and shared memory do
// not reach from machine to machine. A store that finds, while it is in use,
// that its file was taken over under another boot id refuses to go on. Use a
// server for such cases.
//
// Elsewhere than on Linux some of this is weaker:
//
//   - macOS: the file's clock counts sleep, but a holder's own, Go's monotonic
//     clock, does not. After a sleep a holder may trust its lease too long.
//   - Windows: the same, and the clock moves in steps of 16 ms, by which every
//     TTL is made longer. The file is protected by the rights its directory
//     hands down; nothing is checked.
//   - Other systems: OpenFile fails, because there is no way to tell boots
//     apart.
//
// # Waiting
//
// Waiters stand in the lock's row, in the order in which they came. The
// transaction that frees the lock hands it to the first of them, and so does the
// first one that comes upon a lease which has expired.
//
// Each process that waits listens on a unix datagram socket in a directory beside
// the file, which has -waiters added to its name and the rights of the file. Its
// places say which socket that is. The step that hands the lock over passes by
// those whose socket nobody has open, for their process is dead. Then it sends the
// lease to the waiter, who need not ask for it. No process id is used, so that
// containers can share the file.
//
// Waiters look at the row all the same: the first in line four times a second, in
// case a message was lost, and the others once. Where there can be no socket they
// look 20 to 100 times a second as the first in line, and the more rarely the
// farther behind: on Windows, for handles given to New, and for long paths
// elsewhere than on Linux. Looking writes nothing and stands in nobody's way.
//
// # What survives
//
// A process that is killed leaves its leases to their TTL and the file in
// order. After a power failure the leases are void anyway, so lock operations do
// not wait for the disk, but for one in several hundred that moves SQLite's log
// into the file. Only the tokens must never go back: they are taken from a range
// whose end is on disk before the first of it is granted, and after a reboot
// they go on at that end. They are also no less than the wall clock in
// microseconds, so that none repeats when the file is deleted, emptied, or put
// back from an older copy, as long as the clock is not set back beyond the last.
//
// Every process keeps a flock on the file and on the two that SQLite has beside
// it, the log (-wal) and its index (-shm). While any process has them open, nobody
// opens the file without that log and that index, nor by a second name of it: a
// log that was removed, and made anew by the next process, would lack the leases
// that are in the old one. A store whose files were removed, replaced or shortened
// grants nothing more. Only where all three files are deleted while a lease is
// held can the next process not know of it.
package filestore
