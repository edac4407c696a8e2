package simredis

import (
	"bytes"
	"errors"
	"strconv"
)

// Parse returns the words of the first command in b, and the rest of b. It returns no words if
// b has only a part of a command.
func Parse(b []byte) (words []string, rest []byte, err error) {
	n, rest, ok, err := count(b, '*')
	if !ok || err != nil {
		return nil, b, err
	}
	for range n {
		size, after, ok, err := count(rest, '$')
		if !ok || err != nil || len(after) < size+2 {
			return nil, b, err
		}
		words, rest = append(words, string(after[:size])), after[size+2:]
	}
	return words, rest, nil
}

// count reads a line such as *3.
func count(b []byte, kind byte) (n int, rest []byte, ok bool, err error) {
	line, rest, ok := bytes.Cut(b, []byte("\r\n"))
	if !ok {
		return 0, b, false, nil
	}
	if len(line) < 2 || line[0] != kind {
		return 0, b, false, errors.New("simredis: not a command")
	}
	n, err = strconv.Atoi(string(line[1:]))
	return n, rest, err == nil, err
}
