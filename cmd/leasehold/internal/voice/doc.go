// Package voice is what the command says on standard error while it works: errors, messages, the
// log of a store, and why it waits for a lock. It never holds up what it speaks of.
//
//   - voice.go: one line for each message, and a status line on a terminal
//   - waiting.go: why a lock is not there yet
//   - log.go: log records as messages
//   - words.go: numbers, times and names in messages
package voice
