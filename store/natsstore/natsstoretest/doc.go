// Package natsstoretest tests store/natsstore on servers of NATS, which it runs in its own
// process. It is a module of its own, so that programs with the store do not fetch the
// server.
package natsstoretest
