// Package redisdoor serves the locks of a store to lock clients of Redis, by the commands and
// scripts that these send. It is no Redis: it keeps locks, and refuses all else.
//
//   - wire.go: the bytes of commands and replies, and their limits
//   - command.go: what a command asks for: a plan for one lock, or a reply
//   - set.go: the forms of SET that take or extend a lock
//   - script.go: which scripts are known, and the plan that each of them is
//   - refusal.go: what is refused, and what to do instead
//   - owner.go: the value that a client writes, as the owner of a lease
//   - locks.go: plans, carried out on the store
//   - session.go: what a connection says of itself: HELLO, AUTH, CLIENT
//   - conn.go: one connection: its commands side by side, its replies in order
//   - door.go: the connections of a listener
//
// command.go, set.go, script.go, refusal.go and owner.go are functions of their arguments.
package redisdoor
