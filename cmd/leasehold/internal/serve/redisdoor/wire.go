package redisdoor

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// Limits of a command. The longest that a lock client sends is a script of a few hundred bytes.
const (
	mostWords = 64
	mostBytes = 64 << 10 // of all words of a command
	fewBytes  = 512      // of a command whose words share their memory
)

// protocolError is the error of bytes that are no command. The position in the stream is lost.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// readCommand reads a command: an array of strings, which it appends to words. It allocates memory
// for bytes that have arrived, never for bytes that are only announced.
func readCommand(in *bufio.Reader, words []string) ([]string, error) {
	n := 0
	for n <= 0 { // Redis ignores an empty command
		var err error
		if n, err = readLength(in, '*', mostWords); err != nil {
			return words, err
		}
	}
	var few [fewBytes]byte
	var ends [mostWords]int
	all, left := few[:0], mostBytes
	for i := range n {
		size, err := readLength(in, '$', left)
		if err == nil && size < 0 {
			err = protocolError("a word of the command is null")
		}
		if err == nil {
			all, err = appendWord(all, in, size)
		}
		if err != nil {
			return words, whole(err)
		}
		left -= size
		ends[i] = len(all)
	}
	text, begin := "", 0
	if len(all) <= fewBytes {
		text = string(all)
	}
	for _, end := range ends[:n] {
		if len(all) <= fewBytes {
			words = append(words, text[begin:end])
		} else { // the name of a lock would keep a long script in memory
			words = append(words, string(all[begin:end]))
		}
		begin = end
	}
	return words, nil
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
	first, err := in.Peek(1)
	if err != nil {
		return 0, err
	}
	if first[0] != kind {
		return 0, protocolError(fmt.Sprintf("expected '%c', got %q: this server takes commands as arrays of strings, as all client libraries send them", kind, first[0]))
	}
	line, err := in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		return 0, protocolError("a length is too long")
	}
	if err != nil {
		return 0, whole(err)
	}
	digits, ok := bytes.CutSuffix(line[1:], []byte("\r\n"))
	n, err := strconv.Atoi(string(digits))
	if !ok || err != nil || n < -1 {
		return 0, protocolError("invalid length")
	}
	if n > most {
		return 0, protocolError(fmt.Sprintf("the command is too large: this server keeps locks, and takes at most %d words of %d bytes together", mostWords, mostBytes))
	}
	return n, nil
}

// appendWord reads n bytes and the end of line behind them, and appends the bytes.
func appendWord(b []byte, in *bufio.Reader, n int) ([]byte, error) {
	for n += len("\r\n"); n > 0; {
		if _, err := in.Peek(1); err != nil {
			return nil, whole(err)
		}
		part, _ := in.Peek(min(n, in.Buffered()))
		b = append(b, part...)
		in.Discard(len(part))
		n -= len(part)
	}
	word, ok := bytes.CutSuffix(b, []byte("\r\n"))
	if !ok {
		return nil, protocolError("a word does not end where its length says")
	}
	return word, nil
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
