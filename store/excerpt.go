package store

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	mostShown  = 80  // bytes of each part of a Holder
	mostQuoted = 300 // bytes of what a server says
)

// Excerpt returns text that a server or a stranger wrote in a form fit for an
// error or a log: one short line that is safe on a terminal. Text of more than
// 300 bytes is cut, and text with other than graphic characters is quoted. A
// store applies it where it makes an error of what its server said, so that no
// message is longer than it should be, wherever it is printed.
func Excerpt(text string) string { return printable(text, mostQuoted) }

// printable quotes s if it contains anything that a terminal could act on, and
// cuts it to the given number of bytes.
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

// cut returns at most the given number of bytes of s, without half a rune at
// the end.
func cut(s string, most int) string {
	for end := most; end > most-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:most] // it is not UTF-8
}
