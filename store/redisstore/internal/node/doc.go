// Package node is one server as a store uses it: a connection on which calls are sent and answered, and
// what the client knows of the server, which decides whether it may keep locks.
//
//   - node.go: Node, which takes calls, and gives replies to their receivers; call.go: a call
//   - session.go: one connection: calls become commands, single or in lists, and replies answers;
//     greet.go: what begins it; push.go: what the server sends unasked, hand-offs and broken leases;
//     tracking.go: what is withheld while the server's data may have been replaced
//   - fitness.go: what the client knows of the server, and its quarantine; arrival.go: the check of its
//     mark; standing.go: which membership the mark names; alone.go: a server that is the only one
//   - review.go, clock.go: the server's settings and clock, which are read now and then
//   - retained.go: releases that it has not executed
//   - shared.go: what all nodes of a store have in common; topology.go: what a node asks of the packages
//     above, namely where its server is (Topology), and what other nodes make of its news (Others)
//
// It knows no other node, and neither sentinels nor clusters. Waiting has no room of its own: a push is
// an event of the connection, in order with its replies, and package driver has the waiters.
package node
