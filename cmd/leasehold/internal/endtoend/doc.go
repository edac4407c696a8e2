// Package endtoend has no code of its own: its tests run the built command as
// processes, over real Redis servers, and look at what a user would see.
package endtoend
