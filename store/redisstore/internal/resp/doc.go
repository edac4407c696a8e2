// Package resp is the Redis protocol: it reads replies and pushes, appends commands, and
// says what error replies mean. It reads version 2, which all servers speak, and the
// pushes of version 3. Types of version 3 that have an equivalent in version 2 are read
// as that.
//
// It knows bytes only: no connections, no scripts and no locks.
package resp
