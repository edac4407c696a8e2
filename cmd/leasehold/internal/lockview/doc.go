// Package lockview shows locks: as text for people and as JSON for programs.
//
//   - one.go: one lock, with its holders and waiters
//   - list.go: many locks, a line for each lease
//   - changes.go: what has changed since the last look
//   - words.go: holders, their part of a lock, and times, in words
//   - json.go: JSON that is safe on a terminal
package lockview
