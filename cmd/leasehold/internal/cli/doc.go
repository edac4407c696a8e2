// Package cli is the leasehold command: its flags, what it prints, and its exit
// codes. Messages of the command itself go to standard error (package voice); standard
// output is for what was asked for (package lockview shows locks), and under "run" it is the child's alone.
//
// A file has the name of its command: acl*.go, bench.go, bootstrap.go, break.go, doctor.go,
// elect.go, lab*.go, ls.go, man.go, once.go ("run --once-per"), release.go, replace.go,
// resize.go, run.go, schema.go, serve.go, show.go, wait.go, watch.go; acquire_command.go is
// "acquire". The others are what commands share:
//
//   - cli.go: the program, its commands and the flags that all have
//   - store.go, store_flags.go, schemes.go: which store the user means; doctor_stores.go
//     examines it
//   - run_flags.go, kind.go: which lock, and how to wait for it
//   - acquire.go, minhold.go: a lock from its acquire to its release
//   - nested.go: locks that the command runs under already
//   - signals.go, quit: signals
//   - exit.go, suggest.go: exit codes, and what is wrong with arguments
//   - complete.go: what TAB completes
//   - version.go: what this program was built from
package cli
