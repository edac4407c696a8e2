package help

// ExitCodes is the topic of exit codes.
const ExitCodes = `Exit codes of all commands:
  0      done
  125    leasehold itself failed: wrong usage, or the store cannot be reached
  128+N  ended by signal N, as shells show it: 130 for Ctrl-C, 143 for SIGTERM

Exit codes of "run", "elect", "acquire", "release", "break", "wait" and "show --exit-code":
  123    run: the lock was lost, and the command was stopped or had just ended
         release: the owner no longer had the lock
         break: nobody holds the lock
  124    run, acquire: somebody else holds the lock (with --try, or after --wait), or with
         --once-per, the tick was run before; -E N makes it N
         wait: the lock is still held after --for
         show: the lock is held, or may be (--exit-code)
         break: the lock is held with another token
         release: the holder renews the lease
  126    run, elect: the command cannot be executed
  127    run, elect: the command was not found

"run" and "elect" otherwise exit with the code of their command. If that dies of a signal, so do
they.

Others:
  1      doctor: warnings; lab: a story did not go as expected
  2      doctor: errors

"leasehold COMMAND --help" has the details of a command.`

// JSONBegin begins the topic of what --json prints. The description of locks follows, and then
// JSONEnd.
const JSONBegin = `With --json, commands print JSON for programs, in UTF-8 and with times in UTC (RFC 3339). It is a
stable interface: fields may be added; none is renamed or removed. What people read without --json
may change at any time.

"show" prints one lock, "ls" an array of locks.

`

// JSONEnd ends the topic.
const JSONEnd = `

"watch --json" prints one object a line: see its help. "acquire", "doctor" and "bench" print objects
of their own: see "leasehold COMMAND --help".`
