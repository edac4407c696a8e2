// Package zk is a small client of ZooKeeper for leases: sessions that are kept alive, what proves
// that they live, and the requests that locks are made of. It knows nodes, and no locks.
//
// The library go-zookeeper lacks four things that a lease needs. It hides
// the zxid of a transaction, which is the token of a place. It cannot send one request right
// behind another, so that acquiring a free lock takes three round trips instead of two. It hides
// when requests left and answers came, which is what proves that a session lives. And it
// ends a session when it is closed, with all its leases.
//
//	pool.go      sessions by the TTL of their leases
//	session.go   one session, on one connection after the other
//	contact.go   what answers prove of a session's life; pure
//	dial.go      the addresses of a server
//	conn.go      one connection: handshake, identities, requests and answers
//	watch.go     watches, which last longer than connections
//	call.go      requests that are repeated when a connection breaks
//	request.go   how requests are written
//	answer.go    how answers are read, and their errors
//	limits.go    the tick, and the longest session, of the servers
package zk
