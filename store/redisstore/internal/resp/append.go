package resp

import (
	"strconv"
	"time"
)

// AppendCount appends the number of words of the command that follows.
func AppendCount(b []byte, words int) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(words), 10)
	return append(b, '\r', '\n')
}

// AppendWord appends one word, which is given in parts.
func AppendWord(b []byte, parts ...string) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = append(b, '$')
	b = strconv.AppendInt(b, int64(n), 10)
	b = append(b, '\r', '\n')
	for _, p := range parts {
		b = append(b, p...)
	}
	return append(b, '\r', '\n')
}

// AppendNumber appends a number as one word.
func AppendNumber(b []byte, n uint64) []byte {
	var digits [20]byte
	return AppendWord(b, string(strconv.AppendUint(digits[:0], n, 10)))
}

// AppendMillis appends a duration as a number of milliseconds. It rounds up.
func AppendMillis(b []byte, d time.Duration) []byte {
	return AppendNumber(b, Millis(d))
}

// Millis returns a duration in milliseconds, rounded up.
func Millis(d time.Duration) uint64 {
	ms := uint64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++ // adding before the division would overflow for the longest duration
	}
	return ms
}

// AppendCommand appends a command.
func AppendCommand(b []byte, words ...string) []byte {
	b = AppendCount(b, len(words))
	for _, w := range words {
		b = AppendWord(b, w)
	}
	return b
}

// Command returns a command.
func Command(words ...string) []byte { return AppendCommand(nil, words...) }
