package resp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Limits on replies. Our scripts answer with a few hundred bytes, or with the value of
// another client's key, which can have any size. SCAN answers with some thousand keys.
// The slot map of a cluster with scattered slots takes a dozen elements per range.
const (
	mostText     = 512 << 20 // of a string; the server's own limit
	mostKept     = 64 << 10  // of a string: the rest is read and dropped
	mostMemory   = 16 << 20  // of all strings of a reply
	mostElements = 1 << 18
	mostDepth    = 4
	mostShort    = 8        // elements of a nested array whose memory is reused
	lineBuffer   = 16 << 10 // also the longest line
)

// Reader reads values from a stream. After an error the position in the stream is lost,
// and it cannot be used any more.
type Reader struct {
	In       *bufio.Reader
	text     []byte  // of the value read last
	elements []Value // of the outermost array
	nested   []Value // of short arrays in it
	count    int     // number of all elements, including nested ones
}

func NewReader(in io.Reader) Reader { return Reader{In: bufio.NewReaderSize(in, lineBuffer)} }

// Buffered returns the first byte of the next value if it has been received already.
func (r *Reader) Buffered() (kind byte, some bool) {
	if !r.HasBuffered() {
		return 0, false
	}
	begin, _ := r.In.Peek(1)
	return begin[0], true
}

// HasBuffered reports whether something was received and not returned yet.
func (r *Reader) HasBuffered() bool { return r.In.Buffered() > 0 }

// Wait waits until something is received.
func (r *Reader) Wait() error {
	_, err := r.In.Peek(1)
	return err
}

// Next waits for one value and returns it. The value is valid until the next call; clone
// copies it.
func (r *Reader) Next() (Value, error) {
	if cap(r.text) > mostKept {
		r.text = nil
	}
	r.text, r.nested, r.count = r.text[:0], r.nested[:0], 0
	return r.value(0)
}

func (r *Reader) value(depth int) (Value, error) {
	line, err := r.line()
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: line[0]}
	rest, ok := line[1:], true
	switch v.Kind {
	case '+', '-':
		v.Text = r.keep(rest)
	case ':':
		v.Num, ok = integer(rest)
	case '$', '!', '=':
		var n int64
		if n, ok = length(rest, mostText); ok && n >= 0 {
			if v.Text, err = r.string(int(n)); err != nil {
				return Value{}, err
			}
		}
		v.Null = n < 0
		switch {
		case v.Kind == '!':
			v.Kind, ok = '-', ok && !v.Null
		case v.Kind == '=':
			if v.Kind = '$'; ok && len(v.Text) < len(format) {
				return Value{}, notRedis(v.Text)
			}
			v.Text = v.Text[min(len(format), len(v.Text)):]
			ok = ok && !v.Null
		}
	case '*', '~', '%', '>':
		var n int64
		if n, ok = length(rest, mostElements); ok && n >= 0 && depth < mostDepth && (depth == 0 || v.Kind != '>') {
			switch v.Kind {
			case '%': // keys and values alternate, as in version 2
				v.Kind, n = '*', 2*n
			case '~':
				v.Kind = '*'
			}
			v.List, err = r.array(int(n), depth)
			return v, err
		}
		v.Null = n < 0 && v.Kind == '*'
		ok = ok && v.Null
	case '_':
		v.Kind, v.Null, ok = '$', true, len(rest) == 0
	case '#':
		v.Kind, ok = ':', len(rest) == 1 && (rest[0] == 't' || rest[0] == 'f')
		if ok && rest[0] == 't' {
			v.Num = 1
		}
	case ',', '(':
		v.Kind, v.Text = '$', r.keep(rest)
	default:
		ok = false
	}
	if !ok {
		return Value{}, notRedis(line)
	}
	return v, nil
}

// format is the prefix of a verbatim string that gives its format.
const format = "txt:"

func notRedis(what []byte) error {
	return fmt.Errorf("the server does not speak the Redis protocol: %.40q", what)
}

// line reads a line and returns it without its end. It is at least one byte long.
func (r *Reader) line() ([]byte, error) {
	line, err := r.In.ReadSlice('\n')
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
func (r *Reader) string(n int) ([]byte, error) {
	begin := len(r.text)
	for n > 0 {
		part, err := r.In.Peek(min(n, r.In.Size()))
		if err != nil {
			return nil, err
		}
		r.text = append(r.text, part[:min(len(part), mostKept-(len(r.text)-begin))]...)
		if len(r.text) > mostMemory {
			return nil, fmt.Errorf("the answer has more than %d bytes", mostMemory)
		}
		n -= len(part)
		r.In.Discard(len(part))
	}
	end, err := r.In.Peek(2)
	if err != nil {
		return nil, err
	}
	if end[0] != '\r' || end[1] != '\n' {
		return nil, notRedis(end)
	}
	r.In.Discard(2)
	return r.text[begin:len(r.text):len(r.text)], nil
}

// array reads n values. The outermost array of every reply reuses the same memory, and so do
// short arrays in it.
func (r *Reader) array(n, depth int) ([]Value, error) {
	if r.count += n; r.count > mostElements {
		return nil, fmt.Errorf("the answer has more than %d elements", mostElements)
	}
	var list []Value
	if depth == 0 {
		list = r.elements[:0]
	} else if n <= mostShort {
		if cap(r.nested)-len(r.nested) < n { // the old memory stays with those that were read
			r.nested = make([]Value, 0, min(2*cap(r.nested)+4*mostShort, 64*mostShort))
		}
		at := len(r.nested)
		r.nested = r.nested[:at+n]
		list = r.nested[at : at : at+n]
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

func (r *Reader) keep(b []byte) []byte {
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
