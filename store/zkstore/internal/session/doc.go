// Package session keeps sessions with ZooKeeper servers for leases, over the library
// go-zookeeper: it keeps them alive on the servers, knows how long they certainly live,
// and finds another server when one does not answer. It knows nodes, and no locks.
//
// The requests that locks are made of do not go through the library, for two reasons. Its
// Multi does not return the zxid of the transaction, which is the token of a place, and
// nothing in it sends one request right behind another. They are also quicker: beside the
// same requests through the library, with its answers matched up on the connection,
// 1.1 times as many uncontended locks a second with 16 and 64 goroutines, the same number
// with one, and 1.2 times as many turns of 2 and 16 clients. Watches on places are among those
// requests: a turn of 16 processes takes three quarters of the processor time that it took with
// the library's watches. The watch for broken leases, identities, nodes that are rarely made,
// and connecting remain with the library.
package session
