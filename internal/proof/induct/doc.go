// Package induct proves the protocol over independent nodes by induction, for any number
// of nodes, attempts and crashes, and checks recorded runs against what was proved.
//
// The protocol is written once, in redlock.spec, and the client's own half in notice.spec.
// etcd.spec has the leases of etcd, and record.spec a lock in a record that is replaced by
// compare-and-set. These files have sorts, state functions, steps, promises, and the clauses
// of an invariant that imply the promises. They are read twice:
//
//   - print (smt.go) writes one SMT-LIB 2.6 file for each obligation: the invariant holds
//     at the start, and each step keeps each clause. A solver must refute the negation of each.
//     Other questions ask for a model: of each step, of a step that breaks a clause once a rule
//     is changed, of a run. finite.go prints these for a small world, without quantifiers.
//   - evaluate (state.go) keeps a concrete state and decides whether an event is an
//     allowed step from there.
//
// parse.go reads a file into the tree of formulas of formula.go and spec.go; the comment
// on Parse has the language. Command cmd/prove prints, runs the solvers and judges their
// answers; "make prove" runs it. docs/verification.md explains the invariant.
//
// # Checking a run
//
// A run has one global order, and one global clock in nanoseconds that all instants are
// read on. It is checked event by event:
//
//	st := induct.RedlockFloor().Start(induct.World{
//		Nodes:   5,
//		TTL:     func(attempt int) time.Duration { ... },
//		Reads:   func(attempt int) bool { ... },
//		Longest: time.Minute,
//		Instant: func(token uint64) int64 { ... },
//		Error:   10 * time.Second,
//	})
//	err := st.Apply(induct.Event{At: 17, Step: "begin", Args: induct.Args(attempt)})
//
// Apply changes the state if the event is an allowed step from it. Otherwise it leaves the
// state as it was, and the error names the step, its arguments, and what the step needs and
// does not have, in the words of the spec. The arguments are those of the step in
// redlock.spec, in that order:
//
//	begin(A)             attempt A begins (an attempt has an owner value of its own)
//	grant(N, A, T, E)    node N grants A token T, in answer to its request that left at E:
//	                     at once, again, or as a hand-off to A's place in the queue
//	confirm(N, A, T, E)  N raises its counter to T for A, which has the lock there by a
//	                     grant in answer to the request that left at E
//	extend(N, A, E)      N extends A's lease, in answer to a request that left at E
//	win(A, Q, T, U)      A has its lease, from the nodes Q, with token T, valid until U
//	renew(A, Q, U)       A's lease is valid until U now, by extensions on Q
//	giveUp(A)            A released, or gave up: it never wins or renews again. It comes
//	                     before the first request to release leaves
//	break(A)             an operator breaks A's lease, before the first node learns of it
//	release(N, A)        N executes a release of A, or a request to break its lease
//	forget(N, A)         A's lease at N ends by N's clock
//	heal(N, A, E)        N gives A its lease again, in answer to a request that left at E; that
//	                     of a reader is a grant
//	crash(N, Z, T)       N forgets its leases, and grants nothing before Z. Its counter is T
//	                     then, if counters can be lost
//	jump(N, Z)           N's clock jumps, and clients count no answer of it before Z
//	recall(N, A, T)      N, which has crashed, has a lease of A again, with T, that was on its disk
//
// Nodes and attempts are numbers from 0. Q is a set of nodes, one bit each. T is the token.
// E, U and Z are instants of the global clock; Z may be later than the event that ends
// the quarantine shows, but not earlier. A TTL is the time by the global clock for which
// a node keeps a lease at least and a client uses it at most, so a run with clocks of
// different rates subtracts the drift from what was asked for.
//
// Clients need not know the global clock. Each event must only be recorded in its place:
// what a node does when it does it, a request's departure not after it left, and a
// deadline not after the instant at which the client stops using the lease.
package induct
