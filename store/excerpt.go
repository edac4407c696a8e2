package store

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostShown  = 80  // bytes of each part of a Holder
	mostQuoted = 300 // bytes of a server's message
)

// Excerpt returns text from a server, or from another kind of client, in a form
// fit for an error or a log: one short line that is safe on a terminal. Text of
// more than 300 bytes is cut, and text with non-graphic characters is quoted.
// Stores apply it to every server message that they put into an error.
func Excerpt(text string) string { return printable(text, mostQuoted) }

// printable cuts s to most bytes, and quotes it if it contains a character that
// a terminal could act on.
func printable(s string, most int) string {
	if len(s) > most {
		s = cut(s, most) + "..."
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
