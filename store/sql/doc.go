// Package sqlstore keeps locks in an SQL database, one row per lock. A step is
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
// Those who wait stand in the lock's row, in the order in which they came. The
// transaction that frees the lock hands it to the first of them, and so does the
// first one that comes upon a lease which has expired. A file tells nobody of
// it: who waits looks, 20 to 100 times a second as the first in line and the more
// rarely the farther behind, down to once a second. Looking writes nothing and
// stands in nobody's way. Between goroutines that share a Store the lock passes
// without looking.
//
// # What survives
//
// A process that is killed leaves its leases to their TTL and the file in
// order. After a power failure the leases are void anyway, so lock operations do
// not wait for the disk, but for one in several hundred that moves SQLite's log
// into the file. Only the tokens must never go back: they are taken from a range
// whose end is on disk before the first of it is granted, and after a reboot
// they go on at that end.
//
// Deleting the file forgets the tokens. So does putting back an older copy. A
// store that has the file open notices that it is gone, or is another, and
// refuses to go on; but leases it had granted are no longer known to those who
// open the new file.
package sqlstore
