package help

// Run is all there is to say about "leasehold run".
const Run = `Waits for the lock NAME, runs the command, and releases the lock when the command
ends. No shell is involved. Standard input and output, the terminal and signals
reach the command as if leasehold were not there. A NAME that begins with "-" is
preceded by a "--" of its own: leasehold run -- -x -- command.

If the store cannot be reached at the start, run fails at once. If it stops
answering while run waits for the lock, run keeps trying for one TTL and then exits
with 125, even before --wait is over. A longer --ttl survives a longer outage. If
servers are in quarantine, run waits until that is over, but not beyond --wait.

The lease is renewed while the command runs. If it is lost, for example because
the store cannot be reached for too long, the command gets SIGTERM, and SIGKILL
after --grace, together with its process group. This happens before anyone else
can get the lock. A stopped job (Ctrl-Z, SIGTSTP) renews nothing; if its lease has
ended, it is killed when it continues.

A guard process beside the command kills it, and its process group, if leasehold
is killed; on Linux also if leasehold is stopped (SIGSTOP) past the end of the
lease. There are four limits. If leasehold is stopped and its guard is killed, the
command goes on past the end of the lease, and is killed when leasehold continues.
Processes that leave the group, as daemons do, are not killed with it. A command that
changes to a user whom leasehold may not signal, as sudo does, cannot be killed:
leasehold says so and waits for it. On Windows there is no guard. Processes that the
command leaves in the background run on without the lock.

All signals that can be caught are passed on, except SIGCHLD, SIGPIPE, SIGURG and
SIGPROF: to the command alone, and if it dies of the signal, to its process group as
well. Ctrl-C and Ctrl-\ reach the whole group, as on any terminal. SIGHUP and SIGINT
are ignored in the command if they were when leasehold started. While run waits for the
lock, SIGHUP, SIGINT, SIGQUIT, SIGABRT, SIGALRM, SIGTERM and SIGXCPU end the wait. If a
signal ended the command or the wait, leasehold dies of the same signal, without a core
dump: Ctrl-C ends the script or the loop around it, unless the command handles Ctrl-C.

A lock has one holder unless you say otherwise: with --shared it has many readers, or
one writer (--exclusive); with --permits N it has up to N holders, or fewer if they take
several permits each (--weight). Every command has to use NAME as the same kind, with
the same N: anything else is an error that names both. Only stores that keep such locks
can be used. Permits have fencing tokens that can be compared within one slot only.

--once-per PERIOD is for jobs that several machines start at the same time, each by its
own clock. A tick is the multiple of PERIOD that is nearest to now: a run that is late
by more than half of PERIOD takes the next tick. --once-offset moves the ticks, for jobs
that may be so late or are due between two of them. The command runs if it has not been
run in this tick; otherwise, or while another run goes on, leasehold exits with 124 at
once (see -E). A tick is run at most once: a run that crashed is not repeated.
--max-hold ends a run that takes too long. --min-hold is how long the store remembers
that a tick was run (default: twice PERIOD). It has to exceed PERIOD by more than the
machines' clocks differ, and must not exceed the longest TTL of the store (max_ttl).

--also NAME takes several locks, all or none. leasehold waits for them one after the
other, in the byte order of their names, so that two commands cannot wait for each other
for ever. The command is stopped when the first of them is lost.
--shared, --exclusive and --permits are about the first NAME; the others are mutexes.

--min-hold keeps the lock after the command has ended, and leasehold waits for that. A
signal ends this wait: the store then keeps the lock for the rest of the time, or of
the TTL if that is longer. If the rest is longer than the store allows (max_ttl), the
first signal only says so, and the second one ends the wait.

The command finds in its environment:
  LEASEHOLD_NAME      the name of the lock
  LEASEHOLD_TOKEN     the fencing token, which is larger for each later grant: a
                      resource that refuses smaller tokens refuses late writes
  LEASEHOLD_OWNER     the owner value of this lease
  LEASEHOLD_OWNERS    the owner values of all leases it runs under, this one last
  LEASEHOLD_TOKENS    with --also, the tokens of all locks: that of NAME, and then
                      those of the others in the byte order of their names
  LEASEHOLD_SLOT      with --permits, the number of this holder: no other holder of
                      NAME has the same one meanwhile, and it is less than N
  LEASEHOLD_DEADLINE  the end of the lease as known at the start (RFC 3339); each
                      renewal extends it

If TRACEPARENT is in the environment (W3C Trace Context, as OpenTelemetry sets it),
others who want the lock see the trace of its holder, in "leasehold show" too.

With --textfile DIR, run writes metrics to a file in DIR when it ends: the time, its exit
code, whether it started the command, how long it waited and how long the command took,
and when the command last succeeded. The label "lock" is NAME. The file is replaced
in one step and keeps its name. An alert for a job that is to succeed daily, on any
machine: time() - max by (lock) (leasehold_run_last_success_timestamp_seconds) > 86400.

A command that waits for a lock it already runs under would wait forever: run
exits with 125 instead.

Exit codes: that of the command, or
  123    the lock was lost; the command was stopped, or had just ended
  124    the lock is held by someone else (with --try, or after --wait), or the tick
         was run before (--once-per); see -E
  125    leasehold itself failed: wrong usage, the store cannot be reached, or the
         command already runs under the lock
  126    the command cannot be executed
  127    the command was not found
  128+N  as shells show it: signal N ended the command, or the wait for the lock,
         and then leasehold itself`
