// Package filestore keeps locks in an SQL database, one row per lock. A step is
// one transaction: read the row, decide what the step does to it, write it back.
//
// Most programs use OpenFile. It keeps the locks in an SQLite file, and they
// exclude all processes of one machine that open the same file. New takes a
// database handle that the caller has opened, and its Dialect. For store.Open the
// URL is file:PATH, as ParseURL describes it. The store keeps locks of every kind:
// mutexes, semaphores and read-write locks.
//
// # Time in a file
//
// A file has no clock, so the machine's clock since boot counts the TTLs. On
// Linux this clock goes on while the machine is suspended. Nobody can set it, so
// a jump of the wall clock neither expires nor extends a lease. It starts again
// at every boot, so the file also records the id of the boot. No holder survives
// a reboot: after one, every lease in the file is void, and tokens go on above
// the last.
//
// Processes that share a file must therefore see the same boot id. Containers of
// one machine usually do, except under systemd-nspawn, which gives each container
// its own. A file cannot be shared with such a container or with another machine,
// nor on a network file system, whose locks and shared memory do not reach from
// one machine to another. A store whose file is taken over by a process with
// another boot id refuses to go on. Use a server for such cases.
//
// On systems other than Linux some of this is weaker:
//
//   - macOS: the file's clock counts sleep, but a holder's own clock (Go's
//     monotonic clock) does not. After a sleep a holder may trust its lease too
//     long.
//   - Windows: as on macOS. The clock moves in steps of 16 ms, and every TTL is
//     extended by one step. The file has the rights that it inherits from its
//     directory; they are not checked.
//   - Other systems: OpenFile fails, because there is no way to tell boots
//     apart.
//
// # Waiting
//
// The lock's row has the queue of waiters, in order of arrival. The transaction
// that frees the lock hands it to the first waiter, as does the first transaction
// that finds the lease expired.
//
// Each process with waiters or holders listens on a unix datagram socket. The
// sockets are in a directory beside the file, whose name is that of the file with
// -waiters added and which has the rights of the file. Each place in the queue names
// the socket of its process. The step that hands the lock on skips places whose
// socket no process has open: their process is dead. It then sends the lease to the
// waiter, which need not ask for it. No process ids are used, so containers can share the
// file.
//
// In case a message is lost, waiters also read the row: the first in the queue
// once a second, the others every two seconds. Without sockets, the first reads
// it 20 to 100 times a second, and the others less often the farther back they
// are. There are no sockets on Windows, for handles given to New, and for long
// paths on systems other than Linux. Reading blocks no other process.
//
// A process that breaks a lease sends the lease's owner to every socket. The
// holder's process then renews the lease at once, and is refused. Without sockets,
// or if the message is lost, its next renewal that is due is refused.
//
// # What survives
//
// The leases of a killed process end with their TTL, and the file stays intact.
// After a power failure the leases are void anyway, so lock operations do not
// wait for the disk. The exception is one in several hundred that moves SQLite's
// log into the file.
//
// Tokens never go back. They are taken from a range whose end is on disk before
// the first token of the range is granted, and after a reboot they go on at that
// end. They are also at least the wall clock in microseconds. So none repeats if
// the file is deleted, emptied or restored from an older copy, unless the clock is
// set back beyond the last token.
//
// Every process keeps a flock on the file and on the two files that SQLite keeps
// beside it, the log (-wal) and its index (-shm). While any process has them open,
// no process can open the file with another log or index, or by a second name: a
// new log would lack the leases that are in the old one. A store whose files were
// removed, replaced or shortened grants nothing more. Only if all three files are
// deleted while a lease is held, the next process cannot know of it.
package filestore
