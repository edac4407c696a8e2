// Package explore searches every interleaving of a small world in which the
// production protocol runs: the quorum's attempts and votes, the lives of
// leases and the formula of validity are the shipped code; nodes are
// internal/proof/modelnode, which does what the scripts do.
//
// The world is N nodes and a few clients that attempt, hold, renew and release one
// lock. Time passes in ticks, between any two steps, for as long as it likes: a client
// may be paused anywhere, and no timer is punctual. Requests and answers arrive in any
// order, at any time or never. Where a Model says so, nodes crash, forget, jump in
// time, and messages arrive twice.
//
// The search is breadth first, so it finds a shortest path to a violation.
//
// # The files
//
// The world: model.go says what is in it and what may happen, state.go one moment of it, pack.go and
// fields.go the few words in which a search keeps that moment; token.go is a fencing token in a byte,
// machines.go the values of the shipped code, of which a state has the numbers; queue.go is
// what waiting adds, beside.go a vote on a lease beside its renewal, lists.go clients with an older
// or a newer list of nodes, counts.go what has happened at least once.
//
// What can happen next: move.go is one step, choices.go and messages.go list those that a state allows.
// walker.go takes one: attempts.go, waiting.go and return.go carry it out for clients that want the
// lock, leases.go and break.go for leases, nodes.go, deliver.go and sharednode.go for nodes.
//
// What must hold: judge.go checks it in each state, fair.go that a waiter comes by the lock at last.
//
// Fewer states: settle.go drops what can no longer matter, reduce.go says which orders need not
// be tried, canonical.go and turn.go take worlds that differ in names alone for one.
//
// The search: search.go goes through the states, seen.go knows those that it has met. trace.go, action.go
// and effect.go tell a path to people.
//
// The rows that are run: rows.go, rows_wait.go, rows_kinds.go and rows_beside.go; switch.go and
// switch_mutants.go take a mechanism out of the shipped code. Command explore in cmd runs them.
package explore
