package store

import "github.com/leasehold-dev/leasehold/internal/excerpt"

const (
	mostShown  = 80  // bytes of each part of a Holder
	mostQuoted = 300 // bytes of a lock's name in an error
)

// Excerpt returns text from a server, or from another kind of client, in a form
// fit for an error or a log: one short line that is safe on a terminal. Text of
// more than 300 bytes is cut, and text with non-graphic characters is quoted.
// Stores apply it to every server message that they put into an error.
func Excerpt(text string) string { return excerpt.Of(text) }
