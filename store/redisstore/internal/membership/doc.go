// Package membership decides which servers a client may use: what a server says about
// itself, whether it is fit to be a node, which membership its mark names, and what the
// failure of a connection means. It builds the commands about the mark.
//
// It sends nothing, and it knows no locks.
//
// A membership is the set of server addresses that decide, as the clients write them, with the
// database of each. All clients must write them alike.
//
// Two clients exclude each other only if any two of their majorities share a node.
// Majorities of A,B,C and D,E,F share none. Nor do A,C, which is a majority of A,B,C, and
// B,D, which is one of A,B,D. So the mark on every node names the membership that the
// node belongs to, and a node refuses clients with another one.
//
// To replace a membership, all clients are first given both, one client after the other.
// This is a joint configuration: a client needs a majority of each, and so excludes
// clients with either. When all clients have both, Replace tells the nodes to refuse
// clients that know the old membership only, waits until those have lost their leases,
// and then makes the nodes of the new membership accept clients that know just that one.
package membership
