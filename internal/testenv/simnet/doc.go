// Package simnet is a network in memory, for code that dials through a function of its
// own, as store/redisstore does through Options.Dial. Its timers are Go's, so in a
// testing/synctest bubble all waiting on it is virtual.
//
// A Conn is one connection, for simulations that decide themselves when what arrives. A
// Network has servers of simredis behind such connections.
package simnet
