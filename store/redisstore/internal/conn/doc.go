// Package conn connects to servers. A Connection exchanges commands for replies: it is
// dialed, with TLS if wanted, and logged in. A Peer is one server to which calls of any
// number of goroutines go over one connection: they are pipelined, a late reply ends the
// connection, and the Peer connects anew. A Pipe is that connection. On Unix it is read and
// written without the overhead of package net.
//
// Package conn moves bytes, and knows no scripts and no locks. Owner and Handler say what
// calls and replies mean. Both are generic over the type of a call, so that passing one on
// allocates nothing.
package conn
