// Package conn connects to servers: it dials, lays TLS over the connection, logs in and
// exchanges commands for replies. On Unix it can read and write without blocking and
// without the overhead of package net.
//
// It moves bytes: it knows no scripts and no locks.
package conn
