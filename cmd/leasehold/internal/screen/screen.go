// Package screen knows what fits on a terminal: how wide text is, where to cut it, and which colours
// it may have.
package screen

import (
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Erases reports whether f is a terminal that can erase a line and move up.
func Erases(f *os.File) bool { return IsTerminal(f) && os.Getenv("TERM") != "dumb" }

// Columns returns how wide a terminal is, or how wide an old one was if it does not tell.
func Columns(f *os.File) int {
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 1 {
		return 80
	}
	return columns
}

// Width returns how many columns a terminal needs for a line of text.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns the beginning of a line of text that fits into some columns.
func Cut(s string, columns int) string {
	n := 0
	for i, r := range s {
		if n += columnsOf(r); n > columns {
			return s[:i]
		}
	}
	return s
}

// Table lays out rows in columns, each as wide as its widest text. The last text of a row is not
// filled up.
func Table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(text))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, text := range row {
			b.WriteString(text)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]+2-Width(text)))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Colours colours text, or leaves it as it is.
type Colours bool

// ColoursOn returns the colours for what is written to f: none unless it is a terminal that has
// some, and its user wants them (https://no-color.org).
func ColoursOn(f *os.File) Colours { return Colours(Erases(f) && os.Getenv("NO_COLOR") == "") }

func (c Colours) in(code, s string) string {
	if !c {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Red is for what is wrong, Yellow for what may be, Green for what is right, and Bold for what is to
// be found quickly.
func (c Colours) Red(s string) string    { return c.in("31;1", s) }
func (c Colours) Yellow(s string) string { return c.in("33;1", s) }
func (c Colours) Green(s string) string  { return c.in("32;1", s) }
func (c Colours) Bold(s string) string   { return c.in("1", s) }
