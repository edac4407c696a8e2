// Package chaos puts real Redis servers behind a network that misbehaves, and
// disturbs both by a seeded schedule: servers are frozen, killed and started
// again; what passes is delayed, held and delivered late, swallowed in one
// direction or both, and cut in the middle of a reply. Its tests have package
// torture hammer the locks on these servers meanwhile, with processes that are
// stopped and killed as well, and every promise checked against the history.
//
// A killed server starts again with all writes that it had acknowledged (appendonly
// with appendfsync always), or without data. Without data it grants nothing until the
// leases that it may have forgotten have ended. So many such restarts would test
// little, since hardly any lock is granted. Take five nodes and a lock that is held on the first three.
// If the third forgets it and grants, the third, fourth and fifth are a majority
// for somebody else; the tests here show that too.
//
// The seed decides which faults come in which order, and what the workers try.
// Real processes on a real machine decide what happens exactly, so a seed
// repeats the pattern of a run and not the run.
//
// It is test equipment: only test files import it.
package chaos
