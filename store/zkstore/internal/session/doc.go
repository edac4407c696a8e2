// Package session keeps sessions with ZooKeeper servers for leases, over the library
// go-zookeeper: it makes the servers hear of them, knows how long they certainly live,
// and finds another server when one does not answer. It knows nodes, and no locks.
package session
