// Package excerpt makes foreign text fit for errors and logs: one short line that is safe
// on a terminal. It knows nothing about where the text comes from.
package excerpt

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// most is how many bytes of a message Of keeps.
const most = 300

// Of returns text from a server, or from another kind of client, in a form fit for an
// error or a log: one short line that is safe on a terminal. Text of more than 300 bytes
// is cut, and text with non-graphic characters is quoted.
func Of(text string) string { return AtMost(text, most) }

// AtMost is Of with another limit: it cuts s to that many bytes, and quotes it if it
// contains a character that a terminal could act on.
func AtMost(s string, bytes int) string {
	if len(s) > bytes {
		s = cut(s, bytes) + "..."
	}
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unsafe) {
		return strconv.QuoteToGraphic(s)
	}
	return s
}

func unsafe(r rune) bool { return !unicode.IsGraphic(r) }

// cut returns the first most bytes of s, or a few less so that no rune is split.
func cut(s string, most int) string {
	for end := most; end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:most] // not UTF-8
}
