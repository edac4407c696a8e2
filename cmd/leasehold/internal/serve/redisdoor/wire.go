package redisdoor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Limits of a command. The longest that a lock client sends is a script of a few hundred bytes.
const (
	mostWords = 64
	mostBytes = 64 << 10 // of all words of a command
	readAhead = 4 << 10  // also the longest line
)

// protocolError is the error of bytes that are no command. The position in the stream is lost.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// readCommand reads a command: an array of strings. It allocates memory for bytes that have
// arrived, never for bytes that are only announced.
func readCommand(in *bufio.Reader) ([]string, error) {
	for {
		n, err := readLength(in, '*', mostWords)
		if err != nil {
			return nil, err
		}
		if n <= 0 { // Redis ignores an empty command
			continue
		}
		words := make([]string, 0, n)
		left := mostBytes
		for range n {
			size, err := readLength(in, '$', left)
			if err == nil && size < 0 {
				err = protocolError("a word of the command is null")
			}
			if err != nil {
				return nil, whole(err)
			}
			word, err := readWord(in, size)
			if err != nil {
				return nil, whole(err)
			}
			left -= size
			words = append(words, word)
		}
		return words, nil
	}
}

// whole makes the end of the stream inside a command an error.
func whole(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readLength reads a line that begins with kind and has a length of at most most.
func readLength(in *bufio.Reader, kind byte, most int) (int, error) {
	first, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	if first != kind {
		return 0, protocolError(fmt.Sprintf("expected '%c', got %q: this server takes commands as arrays of strings, as all client libraries send them", kind, first))
	}
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return 0, protocolError("a length is too long")
	}
	if err != nil {
		return 0, whole(err)
	}
	digits, ok := bytes.CutSuffix(line, []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	if !ok || err != nil || n < -1 {
		return 0, protocolError("invalid length")
	}
	if n > most {
		return 0, protocolError(fmt.Sprintf("the command is too large: this server keeps locks, and takes at most %d words of %d bytes together", mostWords, mostBytes))
	}
	return n, nil
}

// readWord reads n bytes and the end of line behind them.
func readWord(in *bufio.Reader, n int) (string, error) {
	b := make([]byte, 0, min(n+2, readAhead))
	for rest := n + 2; rest > 0; {
		part, err := in.Peek(min(rest, readAhead))
		if err != nil {
			return "", whole(err)
		}
		b = append(b, part...)
		rest -= len(part)
		in.Discard(len(part))
	}
	word, ok := bytes.CutSuffix(b, []byte("\r\n"))
	if !ok {
		return "", protocolError("a word does not end where its length says")
	}
	return string(word), nil
}

// reply is an answer to a client.
type reply struct {
	kind byte // one of + - : $ _ * and %
	n    int64
	text string
	list []reply // of %, keys and values alternate
}

var (
	ok  = reply{kind: '+', text: "OK"}
	nul = reply{kind: '_'}
)

func number(n int64) reply  { return reply{kind: ':', n: n} }
func text(s string) reply   { return reply{kind: '$', text: s} }
func failed(s string) reply { return reply{kind: '-', text: s} }

// append appends the reply in a version of the protocol.
func (r reply) append(b []byte, version int) []byte {
	switch r.kind {
	case '_':
		if version < 3 {
			return append(b, "$-1\r\n"...)
		}
		return append(b, "_\r\n"...)
	case ':':
		b = append(b, ':')
		b = strconv.AppendInt(b, r.n, 10)
	case '$':
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(r.text)), 10)
		b = append(b, "\r\n"...)
		b = append(b, r.text...)
	case '*', '%':
		kind, n := r.kind, len(r.list)
		switch {
		case kind == '%' && version < 3:
			kind = '*'
		case kind == '%':
			n /= 2
		}
		b = append(b, kind)
		b = strconv.AppendInt(b, int64(n), 10)
		b = append(b, "\r\n"...)
		for _, e := range r.list {
			b = e.append(b, version)
		}
		return b
	default:
		b = append(b, r.kind)
		for i := range len(r.text) { // a line break would end the reply
			c := r.text[i]
			if c == '\r' || c == '\n' {
				c = ' '
			}
			b = append(b, c)
		}
	}
	return append(b, "\r\n"...)
}
