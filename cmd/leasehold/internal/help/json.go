package help

// Locks is the contract about --json of ls and show.
const Locks = `The JSON is a stable interface. A lock is an object with
  name           the lock's name; one that is not UTF-8 also has name_base64
  held           whether it is held; the following fields only if it is
  owner          the owner value of the lease
  host, pid, purpose, since, trace
                 what the holder says about itself, as far as it does; since
                 is when it asked for the lock, RFC 3339, by its own clock;
                 trace is the traceparent (W3C) that it asked in
  foreign, unrenewed, lease_broken
                 true if another kind of client made the lock, if nobody renews the
                 lease, and if an operator broke it
  held_for_ms    milliseconds since the lock was granted, by the store's clock;
                 absent if the store cannot tell
  expires_in_ms  milliseconds until the lease ends unless it is renewed;
                 null if it never ends by itself
  token          the fencing token; absent if the store has none
  other_tokens   further tokens that nodes have of the same lease, if any
  kind           "mutex", "semaphore" or "read-write"; the fields above are those
                 of the first holder, and these are about all of them:
  permits        how many permits a semaphore has
  holders        unless it is a mutex with one holder: an array of objects with the
                 fields from owner to token, slot (a number that no other holder has,
                 from 0), weight (how many permits it has) of a semaphore, also of one
                 that was resized to one permit, and mode ("reader" or "writer") of a
                 read-write lock
  undecided      if further leases may be held, which depends on nodes that do not
                 answer: an array of objects with the fields from owner to token
                 (expires_in_ms is the longest that the lease can be held unless it is
                 renewed), kind and permits, and slot, weight and mode as in holders.
                 If held is false, the lock is free only without this field
  broken         with show, if a lease was broken in the last day ("leasehold break"),
                 held or not: an object with owner, token, by, reason, at and now
  queue          with show, if anyone waits: an array of objects with position
                 (1 is next), owner, host, pid, purpose, trace and since (when it
                 began to wait) as above, and expires_in_ms (when its place ends unless
                 it is refreshed; null if it never ends by itself); at most 100
  nodes          for stores of several nodes, what each node answers: an array of
                 objects with node, outcome ("taken", "absent", "unreachable",
                 ...), owner and expires_in_ms if taken, expires_in_ms if
                 quarantined, and error if any
  incomplete     with show, true if too few of several servers answered to know who
                 holds the lock: the other fields are what these servers know
  waiters        with ls, how many wait for the lock, if that was counted
Fields may be added; none is renamed or removed.`
