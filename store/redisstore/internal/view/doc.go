// Package view puts together what the servers of a store showed of a lock: its holders, the
// owners that may hold it as long as some servers are silent, and how long a broken lease lasts.
//
//   - view.go: what each server showed, and the state of the lock that follows from it
//   - shares.go: the same for a lock that several can hold
//   - queue.go: its waiters
//   - broken.go: which lease a break is about, and what the servers' answers to it mean
//
// It is a function of answers. It asks nobody.
package view
