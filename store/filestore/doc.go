// Package filestore keeps locks in a folder. They exclude all processes of one machine that
// open the same folder. For store.Open the URL is file:DIR, as Open describes it. The store
// keeps locks of every kind, by store/recordstore.
//
// # The log
//
// The folder has a log: a file to which each process appends what it does, with one system call
// for each step. The kernel puts the steps in one order. A step has taken effect if the record
// that it replaces was still the newest where the step stands in the log, which each process
// finds out by reading what was appended. Nobody has a lock on anything meanwhile, so
// a process that is stopped or killed at any instruction holds up no other one.
//
// A log that has grown to a quarter of a megabyte goes on in another file.
//
// # Time
//
// The machine's clock since boot dates the steps. On Linux this clock goes on while the machine
// is suspended. Nobody can set it, so a jump of the wall clock neither expires nor extends
// a lease. It starts again at every boot, so the log also has the id of the boot. No holder
// survives a reboot: after one, every lease is void.
//
// Processes that share a folder must therefore see the same boot id. Containers of one machine
// usually do, except under systemd-nspawn, which gives each container its own. A folder cannot
// be shared with such a container or with another machine, nor on a network file system, which
// does not put the steps of several machines in one order. A store whose folder is taken over
// by a process with another boot id refuses to go on. Use a server for such cases.
//
// On systems other than Linux some of this is weaker:
//
//   - macOS: the clock of the steps counts sleep, but a holder's own clock (Go's monotonic
//     clock) does not. After a sleep a holder may trust its lease too long.
//   - Windows: as on macOS. The clock moves in steps of 16 ms, and every TTL is extended by one
//     step. The folder has the rights that it inherits; they are not checked. Waiters
//     poll, and leases of a process that has ended last for their TTL.
//   - Other systems: Open fails, because there is no way to tell boots apart.
//
// # Processes
//
// Each process that holds or waits has a file of its own in the folder, on which it has a flock.
// The kernel ends that with the process. Its leases are then over, and its places in
// queues are skipped, at once. A child process that goes on working under a lock after
// the process has ended has to inherit the flock: see Tether. The leases of a server, which are
// held elsewhere, outlive it: see Options.Lasting. No process ids are used, so
// containers can share the folder. A store that is closed removes its file; a lease that was not
// released then lasts for its TTL.
//
// Beside the file there is a pipe. Through it a process learns at once that it has been handed a
// lock, or that a lease of its own was broken. In case a message is lost, waiters look
// every two seconds, and holders learn of a break when they renew.
//
// # What survives
//
// The log is intact after any process was killed. After a power failure the leases are void
// anyway, so no step waits for the disk.
//
// Tokens are at least the wall clock in microseconds, and the log remembers how far they were. So
// none repeats after a reboot, nor if the folder is deleted, emptied or restored from an older
// copy, unless the clock is set back beyond the last token then.
//
// A store whose log was removed, replaced, shortened or linked grants nothing more, and a process
// that opens the folder while others use it refuses a log that is not theirs. Only if the log
// and the files of the processes are deleted while a lease is held, the next process cannot know.
//
//	store.go      Options, Open and the Store
//	driver.go     the driver of recordstore
//	log.go        the log
//	frame.go      what is appended to it
//	peers_*.go    the processes that use the folder
//	folder.go     making and checking the folder
//	machine_*.go  the clock since boot, and the id of the boot
package filestore
