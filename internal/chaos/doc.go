// Package chaos puts real Redis servers behind a network that misbehaves, and
// disturbs both by a seeded schedule: servers are frozen, killed and started
// again; what passes is delayed, held and delivered late, swallowed in one
// direction or both, and cut in the middle of a reply. Its tests have package
// torture hammer the locks on these servers meanwhile, with processes that are
// stopped and killed as well, and every promise checked against the history.
//
// A killed server starts again with all it had acknowledged (appendonly with
// appendfsync always). That is a condition, not a convenience: take five nodes
// and a lock that is held on the first three. If the third forgets it, the
// third, fourth and fifth are a majority for somebody else, and no client can
// notice. A single restart without data is enough. What a server that forgets
// must not do is grant anything before the longest TTL has passed; as long as
// the store does not enforce that by itself, operators have to, and the tests
// here show both sides: with its data a restart harms nobody, without them it
// breaks mutual exclusion.
//
// The seed decides which faults come in which order, and what the workers try.
// What exactly happens is up to real processes on a real machine, so a seed
// repeats the pattern of a run and not the run.
//
// It is test equipment: only test files import it.
package chaos
