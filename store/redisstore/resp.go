package redisstore

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/leasehold-dev/leasehold/store"
)

// This file reads the Redis protocol, as far as a store needs it: version 2, which all
// servers speak, and the pushes of version 3. Types of version 3 that have an equivalent
// in version 2 are read as that.

// value is one reply, an element of one, or a push.
type value struct {
	kind byte // one of + - : $ * and >, which is a push
	null bool // of $ and *
	text []byte
	num  int64 // of :
	list []value
}

// Limits on replies. Our scripts answer with a few hundred bytes, or with the value of
// another client's key, which can have any size. SCAN answers with some thousand keys.
// The slot map of a cluster with scattered slots takes a dozen elements per range.
const (
	mostText     = 512 << 20 // of a string; the server's own limit
	mostKept     = 64 << 10  // of a string: the rest is read and dropped
	mostMemory   = 16 << 20  // of all strings of a reply
	mostElements = 1 << 18
	mostDepth    = 4
	lineBuffer   = 16 << 10 // also the longest line
)

// replies reads values from a stream. After an error the position in the stream is lost,
// and it cannot be used any more.
type replies struct {
	in       *bufio.Reader
	text     []byte  // of the value read last
	elements []value // of the outermost array
	count    int     // number of all elements, including nested ones
}

func newReplies(in io.Reader) replies { return replies{in: bufio.NewReaderSize(in, lineBuffer)} }

// next waits for one value and returns it. The value is valid until the next call; clone
// copies it.
func (r *replies) next() (value, error) {
	if cap(r.text) > mostKept {
		r.text = nil
	}
	r.text, r.count = r.text[:0], 0
	return r.value(0)
}

func (r *replies) value(depth int) (value, error) {
	line, err := r.line()
	if err != nil {
		return value{}, err
	}
	v := value{kind: line[0]}
	rest, ok := line[1:], true
	switch v.kind {
	case '+', '-':
		v.text = r.keep(rest)
	case ':':
		v.num, ok = integer(rest)
	case '$', '!', '=':
		var n int64
		if n, ok = length(rest, mostText); ok && n >= 0 {
			if v.text, err = r.string(int(n)); err != nil {
				return value{}, err
			}
		}
		v.null = n < 0
		switch {
		case v.kind == '!':
			v.kind, ok = '-', ok && !v.null
		case v.kind == '=':
			if v.kind = '$'; ok && len(v.text) < len(format) {
				return value{}, notRedis(v.text)
			}
			v.text = v.text[min(len(format), len(v.text)):]
			ok = ok && !v.null
		}
	case '*', '~', '%', '>':
		var n int64
		if n, ok = length(rest, mostElements); ok && n >= 0 && depth < mostDepth && (depth == 0 || v.kind != '>') {
			switch v.kind {
			case '%': // keys and values alternate, as in version 2
				v.kind, n = '*', 2*n
			case '~':
				v.kind = '*'
			}
			v.list, err = r.array(int(n), depth)
			return v, err
		}
		v.null = n < 0 && v.kind == '*'
		ok = ok && v.null
	case '_':
		v.kind, v.null, ok = '$', true, len(rest) == 0
	case '#':
		v.kind, ok = ':', len(rest) == 1 && (rest[0] == 't' || rest[0] == 'f')
		if ok && rest[0] == 't' {
			v.num = 1
		}
	case ',', '(':
		v.kind, v.text = '$', r.keep(rest)
	default:
		ok = false
	}
	if !ok {
		return value{}, notRedis(line)
	}
	return v, nil
}

// format is the prefix of a verbatim string that gives its format.
const format = "txt:"

func notRedis(what []byte) error {
	return fmt.Errorf("the server does not speak the Redis protocol: %.40q", what)
}

// line reads a line and returns it without its end. It is at least one byte long.
func (r *replies) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, notRedis(line)
	}
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, notRedis(line)
	}
	return line[:len(line)-2], nil
}

// string reads n bytes and the end of line behind them. It allocates memory for bytes
// that have arrived, never for bytes that are only announced.
func (r *replies) string(n int) ([]byte, error) {
	begin := len(r.text)
	for n > 0 {
		part, err := r.in.Peek(min(n, r.in.Size()))
		if err != nil {
			return nil, err
		}
		r.text = append(r.text, part[:min(len(part), mostKept-(len(r.text)-begin))]...)
		if len(r.text) > mostMemory {
			return nil, fmt.Errorf("the answer has more than %d bytes", mostMemory)
		}
		n -= len(part)
		r.in.Discard(len(part))
	}
	end, err := r.in.Peek(2)
	if err != nil {
		return nil, err
	}
	if end[0] != '\r' || end[1] != '\n' {
		return nil, notRedis(end)
	}
	r.in.Discard(2)
	return r.text[begin:len(r.text):len(r.text)], nil
}

// array reads n values. The outermost array of every reply reuses the same memory.
func (r *replies) array(n, depth int) ([]value, error) {
	if r.count += n; r.count > mostElements {
		return nil, fmt.Errorf("the answer has more than %d elements", mostElements)
	}
	var list []value
	if depth == 0 {
		list = r.elements[:0]
	}
	for range n {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	if depth == 0 && cap(list) < 64 {
		r.elements = list
	}
	return list, nil
}

func (r *replies) keep(b []byte) []byte {
	begin := len(r.text)
	r.text = append(r.text, b...)
	return r.text[begin:len(r.text):len(r.text)]
}

func integer(b []byte) (int64, bool) {
	if len(b) > 0 && b[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// length reads the length of a string or an array; -1 means that it is null.
func length(b []byte, most int64) (int64, bool) {
	n, ok := integer(b)
	return n, ok && -1 <= n && n <= most
}

// clone returns a copy of v in memory of its own.
func (v value) clone() value {
	v.text = bytes.Clone(v.text)
	if v.list != nil {
		list := make([]value, len(v.list))
		for i := range list {
			list[i] = v.list[i].clone()
		}
		v.list = list
	}
	return v
}

// isError reports whether v is an error reply with that code.
func (v value) isError(code string) bool {
	return v.kind == '-' && bytes.HasPrefix(v.text, []byte(code))
}

// String describes the value in one short line.
func (v value) String() string {
	switch {
	case v.null:
		return "nil"
	case v.kind == ':':
		return strconv.FormatInt(v.num, 10)
	case v.kind == '*', v.kind == '>':
		return store.Excerpt(fmt.Sprint(v.list))
	}
	return store.Excerpt(strconv.Quote(string(v.text)))
}
